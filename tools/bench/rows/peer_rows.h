#pragma once
#include <functional>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// What `lockstep bench peers` is told.
struct PeerOptions {
  std::string patterns = "*";  ///< rows whose names fit
  double seconds = 10;         ///< of each row's pairs of steps
  std::string device = "cpu";  ///< or "cuda": native numerics against eager and compiled PyTorch, on one GPU
};

/// `lockstep bench peers`: steps of 512 tokens of the Llama 3 debugmodel (8192 on a GPU), from the same parameters on
/// the same tokens, step by step in turns with PyTorch and torchtitan 0.2.2 in processes of their own, in milliseconds.
/// Rows: one_thread, two_threads; fsdp_2, ddp_2, tp_2, cp_2, pp_2 in two processes of one thread each; one_gpu.
///
/// Facts: tokens_per_second, peer_tokens_per_second; peak_memory_bytes, peer_peak_memory_bytes of the first process;
/// start_seconds, peer_start_seconds until it is ready; first_step_seconds, peer_first_step_seconds; loss_difference,
/// the largest relative one of the first 20 steps; on CPUs but for experts, at_most, how many times faster
/// than the peer we would be if a step's products alone took time, and all cores of the row shared them: in turns with
/// the peer, too. Curves: losses, peer_losses of these.
///
/// `report` gets rows as they come. Throws BadInput if no Python has torch: without peers there is nothing to measure.
void measure_peers(const PeerOptions& options, const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench
