#include "trainer/state/held_shards.h"

#include "runtime/plain/tensor_bytes.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

/// Rows of a shard; all of one that has no dimensions.
std::span<const std::byte> bytes_of_run(const HeldShard& shard, const models::PartRows& run) {
  const auto all = bytes_of(shard.plain);
  if (shard.box.size.empty()) return all;
  const auto row = all.size() / static_cast<size_t>(shard.box.size[0]);
  const auto first = static_cast<size_t>(run.row - shard.box.offset[0]);
  return all.subspan(first * row, static_cast<size_t>(run.count) * row);
}

std::vector<std::byte> joined_runs(const HeldShard& shard, const Piece& piece) {
  std::vector<std::byte> bytes;
  for (const auto& run : piece.runs) {
    const auto rows = bytes_of_run(shard, run);
    bytes.insert(bytes.end(), rows.begin(), rows.end());
  }
  return bytes;
}

}  // namespace

std::vector<HeldShard> held_shards(const TrainingState& state, bool on_cpu) {
  std::vector<HeldShard> held;
  for (auto& stored : stored_tensors(state)) {
    const auto& layout = stored.spec().layout;
    const auto& shards = sharded(stored.tensor).shards()->whole();
    for (size_t i = 0; i < shards.size(); ++i) {
      auto box = held_box(stored.spec(), i);
      if (box.elements() == 0 || !stands_for_copies(layout, layout.mesh().local_ranks()[i])) continue;
      const auto device = on_cpu ? at::Device(c10::kCPU) : shards[i].device();
      held.push_back({stored, std::move(box), shards[i].to(device, c10::kFloat).contiguous()});
    }
  }
  return held;
}

Chunks chunks_of(std::span<const HeldShard> shards) {
  Chunks all;
  for (const auto& shard : shards)
    for (const auto& piece : pieces_of(shard.stored.division, shard.box)) {
      const bool is_one = piece.runs.size() == 1;
      if (!is_one) all.joined.push_back(joined_runs(shard, piece));
      const std::span<const std::byte> bytes = is_one ? bytes_of_run(shard, piece.runs[0]) : all.joined.back();
      all.chunks.push_back(
          {shard.stored.name(piece.part), "F32", shard.stored.division.sizes_of(piece.part), piece.box, bytes});
    }
  return all;
}

}  // namespace lockstep::trainer
