#pragma once
#include <functional>
#include <string>
#include <vector>

namespace lockstep::bench {

/// Something of ours on a GPU and its peer, both on the same memory's size.
struct GpuCase {
  std::string name;
  std::function<void()> ours;
  std::string peer_name;
  std::function<void()> peer;
};

/// Kernels of our own ops at the sizes of llama3 1B with 8,192 tokens, each beside a copy that reads and writes as many
/// bytes, and where LibTorch has one beside its fused kernel. Attention: beside what holds the table of scores.
std::vector<GpuCase> gpu_op_cases();

}  // namespace lockstep::bench
