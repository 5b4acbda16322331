#include <ATen/Functions.h>

#include <numeric>

#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/collective_parts.h"

namespace lockstep {

/// Observers may put another tensor in the place of what arrived.
Pieces Gathering::destinations(const Collective& collective, int round, const Shards& shards) {
  auto& world = collective.mesh().world();
  if (world.meta() || !world.observers().empty()) return {};
  Pieces destinations;
  for (size_t i = 0; i < shards.size(); ++i) {
    destinations.push_back(room_for(collective, round, i, shards[i].options()));
    if (!destinations.back().empty()) continue;
    result_.clear();
    return {};
  }
  return destinations;
}

/// Makes the result of one rank; views of it, a piece each, or none if a piece is not in one piece there.
std::vector<at::Tensor> Gathering::room_for(const Collective& collective, int round, size_t index,
                                            const at::TensorOptions& options) {
  const auto dim = static_cast<size_t>(dim_);
  const auto members = static_cast<size_t>(collective.mesh().axis_size(collective.axis()));
  std::vector<int64_t> lengths;
  for (size_t m = 0; m < members; ++m) lengths.push_back(collective.received_sizes(round, index, m)[dim]);
  auto sizes = collective.received_sizes(round, index, 0);
  if (c10::multiply_integers(sizes.begin(), sizes.begin() + dim_) != 1) return {};
  sizes[dim] = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  result_.push_back(at::empty(sizes, options));
  return result_.back().split_with_sizes(lengths, dim_);
}

Shards Gathering::take(const Collective& collective, const Pieces& received) {
  if (!result_.empty()) return std::move(result_);
  return once_per_group(collective.move(), collective.has_one_result(),
                        [&](size_t i) { return at::cat(received[i], dim_); });
}

namespace {

/// S -> R: every member gets all shards.
class AllGather : public Collective {
 public:
  AllGather(const Move& move, Shards shards)
      : Collective(move, std::move(shards)), gathering_(shard_dim(*move.before, from().dim)) {}

  Pieces pieces(int round) const override { return to_everyone(is_alike(round)); }
  bool is_alike(int /*round*/) const override { return has_one_result(); }
  std::vector<int64_t> received_sizes(int /*round*/, size_t index, size_t member) const override {
    const auto held = member_cut(*move().before, index, member, from().dim);
    return piece_sizes(index, member, from().dim, held.length);
  }
  Pieces destinations(int round) override { return gathering_.destinations(*this, round, shards()); }

 private:
  Shards made_of(int /*round*/, const Pieces& received) override { return gathering_.take(*this, received); }

  Gathering gathering_;
};

}  // namespace

std::unique_ptr<Collective> make_all_gather(const Move& move, Shards shards) {
  return std::make_unique<AllGather>(move, std::move(shards));
}

}  // namespace lockstep
