#include "trainer/launch/rank_texts.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>

#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {

/// One row per rank: ranks count up with the last axis, as nested cuts of one dimension do.
at::Tensor rows_of_all_ranks(const Mesh& mesh, const Shards& rows) {
  const Placements placements(static_cast<size_t>(mesh.axis_count()), Placement::shard(0));
  auto sizes = rows[0].sizes().vec();
  sizes.insert(sizes.begin(), mesh.rank_count());
  Shards shards;
  for (const auto& row : rows) shards.push_back(row.unsqueeze(0));
  return gather(from_shards(std::move(shards), Layout(mesh, placements), sizes, rows[0].scalar_type()));
}

namespace {

/// The process speaks for each of its ranks.
at::Tensor rows_of_all_ranks(const Mesh& mesh, const at::Tensor& row) {
  return trainer::rows_of_all_ranks(mesh, Shards(mesh.local_count(), row));
}

}  // namespace

std::vector<std::string> texts_of_all_ranks(const Mesh& mesh, const std::string& mine) {
  const PlainTensors guard;
  const auto lengths = rows_of_all_ranks(mesh, at::full({}, static_cast<int64_t>(mine.size()), at::kLong));
  const auto* length = lengths.const_data_ptr<int64_t>();
  const int64_t width = *std::max_element(length, length + mesh.rank_count());
  if (width == 0) return std::vector<std::string>(static_cast<size_t>(mesh.rank_count()));
  const auto row = at::zeros({width}, at::kByte);
  if (!mine.empty()) std::memcpy(row.mutable_data_ptr(), mine.data(), mine.size());
  const auto rows = rows_of_all_ranks(mesh, row);
  std::vector<std::string> texts;
  for (int rank = 0; rank < mesh.rank_count(); ++rank)
    texts.emplace_back(static_cast<const char*>(rows.const_data_ptr()) + rank * width, length[rank]);
  return texts;
}

std::vector<int64_t> numbers_of_all_ranks(const Mesh& mesh, int64_t mine) {
  const PlainTensors guard;
  const auto rows = rows_of_all_ranks(mesh, at::full({}, mine, at::kLong));
  const auto* numbers = rows.const_data_ptr<int64_t>();
  return {numbers, numbers + mesh.rank_count()};
}

bool any_rank(const Mesh& mesh, bool mine) {
  const auto numbers = numbers_of_all_ranks(mesh, mine ? 1 : 0);
  return std::any_of(numbers.begin(), numbers.end(), [](int64_t number) { return number != 0; });
}

}  // namespace lockstep::trainer
