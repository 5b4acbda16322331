#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <vector>

#include "core/box.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/state/stored_tensors.h"

/// What a process holds of a state that is to be saved.
namespace lockstep::trainer {

/// One rank's cut of a tensor, which stands for all copies of it.
struct HeldShard {
  Stored stored;
  Box box;
  at::Tensor plain;  ///< float32, contiguous: sizes are the box's
};

/// Those of this process's ranks, without empty ones, on the CPU or where they lie; they share bytes with the state
/// where they can. Waits for what is under way. REQUIRES: a state that outlives them.
std::vector<HeldShard> held_shards(const TrainingState& state, bool on_cpu = true);

/// What write_chunks() takes, with the bytes that it borrows.
struct Chunks {
  std::vector<ChunkToSave> chunks;
  std::vector<std::vector<std::byte>> joined;  ///< of parts whose rows do not follow each other in a shard
};

/// The shards as chunks of the tensors that they divide into. Reads memory and nothing else: any thread may call it.
/// REQUIRES: shards that outlive the result.
Chunks chunks_of(std::span<const HeldShard> shards);

}  // namespace lockstep::trainer
