#include "trainer/state/replicas.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "consistency/difference.h"
#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/tensor/tensor_bytes.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/state/stored_tensors.h"

namespace lockstep::trainer {
namespace {

/// A sum of digests, modulo 2^128.
struct Sum {
  uint64_t high = 0, low = 0;
  void add(const Digest& digest, uint64_t times) {
    high += digest.high * times;
    low += digest.low * times;
  }
};

/// Of how many ranks hold a cut alike.
uint64_t copies_of(const Layout& layout) {
  uint64_t copies = 1;
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (!layout[axis].is_shard()) copies *= static_cast<uint64_t>(layout.mesh().axis_size(axis));
  return copies;
}

/// All copies are added, and the first taken off as often as there are copies: nothing is left if they are the same.
uint64_t times_of(bool is_first, uint64_t copies) { return is_first ? 1 - copies : 1; }

Digest digest_of_shard(const at::Tensor& shard) { return tensor_digest(bytes_of(shard.cpu().contiguous())); }

/// What a local rank adds for its copies; `odd`: so that two tensors that change places do not make up for each other.
Sum excess_of(const TrainingState& state, Copies asked, size_t index) {
  Sum sum;
  uint64_t odd = 1;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      if (!prefix.empty() && asked == Copies::kParameters) continue;
      const auto& layout = layout_of(tensor);
      const auto copies = copies_of(layout);
      odd += 2;
      if (copies == 1) continue;
      const bool is_first = stands_for_copies(layout, layout.mesh().local_ranks()[index]);
      sum.add(digest_of_shard(sharded(tensor).shards()->whole()[index]), odd * times_of(is_first, copies));
    }
  return sum;
}

std::string text_of(std::span<const StepScalar> numbers) {
  std::string text;
  for (const auto& [name, value] : numbers) text += fmt::format("{} = {:a}\n", name, value);
  return text;
}

at::Tensor row_of(const Mesh& mesh, const TrainingState& state, const Digest& numbers, Copies copies, size_t index) {
  const auto tensors = excess_of(state, copies, index);
  Sum of_numbers;
  const bool is_first = mesh.local_ranks()[index] == mesh.ranks()[0];
  of_numbers.add(numbers, times_of(is_first, static_cast<uint64_t>(mesh.rank_count())));
  const std::vector<int64_t> words{static_cast<int64_t>(tensors.high), static_cast<int64_t>(tensors.low),
                                   static_cast<int64_t>(of_numbers.high), static_cast<int64_t>(of_numbers.low)};
  return at::tensor(words);
}

std::string difference_of_tensors(const TrainingState& state) {
  std::string found;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      if (copies_of(layout_of(tensor)) == 1) continue;
      const auto all = all_shards(local_shards(tensor));  // of all of them: ranks do the same
      auto difference = lockstep::difference_of(all, whole_of(all), kBits);
      if (!found.empty() || difference.agrees()) continue;
      difference.kind = "copies", difference.name = prefix + entry.name;
      difference.reference_name = "the first copy";
      found = difference.text();
    }
  return found;
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

std::string replica_difference(const TrainingState& state, std::span<const StepScalar> numbers, Copies copies) {
  const PlainTensors guard;
  const auto& mesh = layout_of(state.at(0).value).mesh();
  const auto text_of_numbers = text_of(numbers);
  const auto digest_of_numbers = digest(std::as_bytes(std::span(text_of_numbers)));
  Shards rows;
  for (size_t i = 0; i < mesh.local_count(); ++i) rows.push_back(row_of(mesh, state, digest_of_numbers, copies, i));
  const auto sum = rows_of_all_ranks(mesh, rows).sum(0);
  const auto* words = sum.const_data_ptr<int64_t>();
  if ((words[0] | words[1] | words[2] | words[3]) == 0) return "";
  auto text = difference_of_tensors(state);
  if (text.empty()) text = difference_of_numbers(mesh, numbers);
  return text.empty() ? "digests of copies differed, and no longer do" : text;
}

}  // namespace lockstep::trainer
