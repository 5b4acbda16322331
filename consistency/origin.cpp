#include "consistency/origin.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <optional>
#include <set>

#include "core/digest/tensor_digest.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/plain/tensor_bytes.h"

namespace lockstep {
namespace {

bool is_close(const at::Tensor& left, const at::Tensor& right) {
  if (!left.is_floating_point()) return at::equal(left, right);
  return at::allclose(left, right, 1e-5, 1e-12, /*equal_nan=*/true);
}

Digest digest_of_shard(const at::Tensor& shard) { return tensor_digest(bytes_of(shard.contiguous())); }

/// The lowest rank whose part, of the same sizes, is what `rank` has in place of its own; where both parts are alike
/// there is no telling.
std::optional<int> owner_of_values(const TensorSpec& spec, const Damage& damage, int rank) {
  const auto has = part_of(spec, damage.candidate, rank), own = part_of(spec, damage.expected, rank);
  for (const int other : spec.layout.mesh().ranks()) {
    const auto part = part_of(spec, damage.expected, other);
    if (part.sizes() == has.sizes() && is_close(has, part) && !is_close(own, part)) return other;
  }
  return std::nullopt;
}

/// Of parts as they are cut by `spec`: whose stand where others should. Each part with a wrong element is another's.
std::string of_other_ranks(const TensorSpec& spec, const Damage& damage) {
  std::set<int> owners;
  for (const int rank : spec.layout.mesh().ranks()) {
    if (!part_of(spec, damage.wrong, rank).any().item<bool>()) continue;
    const auto owner = owner_of_values(spec, damage, rank);
    if (!owner) return "";
    owners.insert(*owner);
  }
  if (owners.empty()) return "";
  return owners.size() == 1 ? "the values of rank " + std::to_string(*owners.begin()) : "the values of other ranks";
}

/// Whether every rank that has something wrong has what stood there before.
bool are_old(const HeldShards& values, const std::vector<Digest>& old, const Damage& damage) {
  if (old.size() != values.shards.size()) return false;
  for (size_t r = 0; r < values.shards.size(); ++r) {
    const auto& shard = values.shards[r];
    const auto expected = part_of(*values.spec, damage.expected, values.ranks[r]);
    if (!same_bits(shard, expected.to(shard.scalar_type())) && digest_of_shard(shard) != old[r] &&
        part_of(*values.spec, damage.wrong, values.ranks[r]).any().item<bool>())
      return false;
  }
  return true;
}

}  // namespace

std::string origin_of(const HeldShards& held, const HeldShards& values, const Damage& damage) {
  if (are_old(values, held.old_values, damage)) return "old values";
  for (const auto* spec : {values.spec, held.source})
    if (spec && spec->sizes.size() == static_cast<size_t>(damage.expected.dim()))
      if (auto text = of_other_ranks(*spec, damage); !text.empty()) return text;
  return "";
}

std::vector<Digest> digests_of(const HeldShards& held) {
  const PlainTensors guard;
  std::vector<Digest> digests;
  for (const auto& shard : finished(held).shards) digests.push_back(digest_of_shard(shard));
  return digests;
}

}  // namespace lockstep
