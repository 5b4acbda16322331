#include "trainer/state/state_digest.h"

#include <ATen/Functions.h>

#include <charconv>
#include <set>

#include "core/digest/place_digest.h"
#include "core/error.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/state/stored_tensors.h"

namespace lockstep::trainer {
namespace {

/// Where the elements of a shard's rows lie in a part: runs along its last dimension are consecutive in both.
class Places {
 public:
  Places(std::vector<int64_t> part_sizes, const Box& held) : sizes_(std::move(part_sizes)), held_(held) {
    for (size_t dim = 1; dim + 1 < held.size.size(); ++dim) lines_ *= held.size[dim];
  }

  int64_t lines() const { return lines_; }

  /// Of the part.
  std::vector<int64_t> strides() const {
    std::vector<int64_t> strides(sizes_.size(), 1);
    for (size_t dim = sizes_.size() - 1; dim > 0; --dim) strides[dim - 1] = strides[dim] * sizes_[dim];
    return strides;
  }

  /// The index in the part of the first element of line `line` of row `part_row`.
  uint64_t first(int64_t part_row, int64_t line) const {
    int64_t index = 0, factor = 1;
    for (size_t dim = sizes_.size() - 1; dim > 0; --dim) {
      int64_t at = 0;
      if (dim + 1 < sizes_.size()) at = line % held_.size[dim], line /= held_.size[dim];
      index += (held_.offset[dim] + at) * factor;
      factor *= sizes_[dim];
    }
    return static_cast<uint64_t>(index + part_row * factor);
  }

 private:
  std::vector<int64_t> sizes_;
  const Box& held_;
  int64_t lines_ = 1;  ///< of a row
};

void add_rows(PlaceDigest& digest, uint64_t key, const Places& places, std::span<const std::byte> rows,
              const models::PartRows& run) {
  const auto lines = static_cast<size_t>(run.count * places.lines());
  const auto bytes = lines > 0 ? rows.size() / lines : 0;
  for (size_t line = 0; line < lines; ++line) {
    const auto row = run.part_row + static_cast<int64_t>(line) / places.lines();
    digest.add(key, places.first(row, static_cast<int64_t>(line) % places.lines()), rows.subspan(line * bytes, bytes));
  }
}

/// The same where the rows lie.
Digest of_rows_on_gpu(uint64_t key, const Places& places, const at::Tensor& rows, const models::PartRows& run) {
  return on_gpu::place_sum(rows, key, places.first(run.part_row, /*line=*/0), rows.sizes(), places.strides());
}

/// Not by way of the pieces that checkpoints are made of: what goes wrong with those shows.
void add_shard(PlaceDigest& digest, const HeldShard& shard) {
  const auto& [stored, held, given] = shard;
  const bool is_on_gpu = given.is_cuda() && cuda::has_kernels() && !held.size.empty();
  const auto plain = is_on_gpu ? given : given.cpu();
  if (held.size.empty()) return digest.add(PlaceDigest::key(stored.name(0)), 0, bytes_of(plain));
  for (size_t part = 0; part < stored.division.parts().size(); ++part) {
    const Places places(stored.division.sizes_of(part), held);
    const auto key = PlaceDigest::key(stored.name(part));
    for (const auto& run : stored.division.rows_of(part, held.offset[0], held.size[0])) {
      const auto rows = plain.narrow(0, run.row - held.offset[0], run.count);
      if (is_on_gpu)
        digest.add(of_rows_on_gpu(key, places, rows, run));
      else
        add_rows(digest, key, places, bytes_of(rows), run);
    }
  }
}

Digest parsed(const std::string& text) {
  const auto word = [&](size_t at) {
    uint64_t value = 0;
    std::from_chars(text.data() + at, text.data() + at + 16, value, 16);
    return value;
  };
  return {word(0), word(16)};
}

Digest sum_of_all_ranks(const Mesh& mesh, const Digest& mine) {
  if (static_cast<int>(mesh.local_count()) == mesh.rank_count()) return mine;
  // A process speaks for each of its ranks, and counts once.
  const auto texts = texts_of_all_ranks(mesh, fmt::format("{} {}", mine.text(), mesh.local_ranks()[0]));
  PlaceDigest sum;
  for (const auto& text : std::set(texts.begin(), texts.end())) sum.add(parsed(text));
  return sum.result();
}

}  // namespace

Digest digest_of_held(std::span<const HeldShard> shards) {
  const PlainTensors guard;
  PlaceDigest sum;
  for (const auto& shard : shards) add_shard(sum, shard);
  return sum.result();
}

Digest sum_of_parts(std::span<const std::string> parts) {
  PlaceDigest sum;
  for (const auto& part : parts) sum.add(parsed(part));
  return sum.result();
}

Digest state_digest(const TrainingState& state) {
  const PlainTensors guard;
  return sum_of_all_ranks(layout_of(state.at(0).value).mesh().whole(),
                          digest_of_held(held_shards(state, /*on_cpu=*/false)));
}

}  // namespace lockstep::trainer
