#include "trainer/state/replicas.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "consistency/difference.h"
#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/state/shard_digest.h"
#include "trainer/state/stored_tensors.h"

namespace lockstep::trainer {
namespace {

/// Of how many ranks hold a cut alike.
uint64_t copies_of(const Layout& layout) {
  uint64_t copies = 1;
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (!layout[axis].is_shard()) copies *= static_cast<uint64_t>(layout.mesh().axis_size(axis));
  return copies;
}

/// All copies are added, and the first taken off as often as there are copies: nothing is left if they are the same.
uint64_t times_of(bool is_first, uint64_t copies) { return is_first ? 1 - copies : 1; }

std::string text_of(std::span<const StepScalar> numbers) {
  std::string text;
  for (const auto& [name, value] : numbers) text += fmt::format("{} = {:a}\n", name, value);
  return text;
}

std::string difference_of_tensors(const TrainingState& state) {
  std::string found;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      if (copies_of(layout_of(tensor)) == 1 || layout_of(tensor).mesh().local_count() == 0) continue;
      const auto all = all_shards(local_shards(tensor));  // of all of them: ranks do the same
      auto difference = lockstep::difference_of(all, whole_of(all), kBits);
      if (!found.empty() || difference.agrees()) continue;
      difference.kind = "copies", difference.name = prefix + entry.name;
      difference.reference_name = "the first copy";
      found = difference.text();
    }
  return found;
}

std::string first_said(const std::vector<std::string>& texts) {
  const auto said = std::find_if(texts.begin(), texts.end(), [](const auto& text) { return !text.empty(); });
  return said == texts.end() ? "" : *said;
}

std::string line_at(const std::string& text, size_t at) {
  const auto begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string difference_of_numbers(const Mesh& mesh, std::span<const StepScalar> numbers) {
  const auto texts = texts_of_all_ranks(mesh, text_of(numbers));
  for (size_t r = 1; r < texts.size(); ++r) {
    if (texts[r] == texts[0]) continue;
    const auto at = std::mismatch(texts[0].begin(), texts[0].end(), texts[r].begin(), texts[r].end()).first;
    const auto before = static_cast<size_t>(at - texts[0].begin());
    return fmt::format("{} on rank {}, {} on rank 0", line_at(texts[r], before), r, line_at(texts[0], before));
  }
  return "";
}

}  // namespace

void ReplicaDigests::Sum::add(const Digest& digest, uint64_t times) {
  high += digest.high * times;
  low += digest.low * times;
}

void ReplicaDigests::add(const ParameterState& entry, Copies asked) {
  const PlainTensors guard;
  for (const auto& [prefix, tensor] : entry.tensors()) {
    if (!prefix.empty() && asked == Copies::kParameters) continue;
    const auto& layout = layout_of(tensor);
    const auto& ranks = layout.mesh().local_ranks();
    const auto copies = copies_of(layout);
    const auto& whole = layout.mesh().whole();
    sums_.resize(whole.local_count());
    odd_ += 2;
    for (size_t i = 0; i < ranks.size() && copies > 1; ++i)
      sums_[static_cast<size_t>(whole.local_index(ranks[i]))].add(
          digest_of_shard(sharded(tensor).shards()->whole()[i]),
          odd_ * times_of(stands_for_copies(layout, ranks[i]), copies));
  }
}

ReplicaDigests::Sum ReplicaDigests::of_numbers(const Mesh& mesh, std::span<const StepScalar> numbers, size_t index) {
  const auto text = text_of(numbers);
  Sum sum;
  sum.add(digest(std::as_bytes(std::span(text))),
          times_of(mesh.local_ranks()[index] == mesh.ranks()[0], static_cast<uint64_t>(mesh.rank_count())));
  return sum;
}

std::string ReplicaDigests::difference(const TrainingState& state, std::span<const StepScalar> numbers) {
  const PlainTensors guard;
  const auto& mesh = layout_of(state.at(0).value).mesh().whole();
  sums_.resize(mesh.local_count());
  Shards rows;
  for (size_t i = 0; i < mesh.local_count(); ++i) {
    const auto of_number = of_numbers(mesh, numbers, i);
    const std::vector<int64_t> words{static_cast<int64_t>(sums_[i].high), static_cast<int64_t>(sums_[i].low),
                                     static_cast<int64_t>(of_number.high), static_cast<int64_t>(of_number.low)};
    rows.push_back(at::tensor(words));
  }
  clear();
  const auto sum = rows_of_all_ranks(mesh, rows).sum(0);
  const auto* words = sum.const_data_ptr<int64_t>();
  if ((words[0] | words[1] | words[2] | words[3]) == 0) return "";
  // Ranks of another stage have other tensors.
  auto text = first_said(texts_of_all_ranks(mesh, difference_of_tensors(state)));
  if (text.empty()) text = difference_of_numbers(mesh, numbers);
  return text.empty() ? "digests of copies differed, and no longer do" : text;
}

std::string replica_difference(const TrainingState& state, std::span<const StepScalar> numbers, Copies copies) {
  ReplicaDigests digests;
  for (const auto& entry : state) digests.add(entry, copies);
  return digests.difference(state, numbers);
}

}  // namespace lockstep::trainer
