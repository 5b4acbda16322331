#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::trainer {

/// How a tensor of one folder differs from that of the other.
struct WeightDifference {
  std::string name;
  std::string what;       ///< "only in A", "sizes [2] and [3]"; empty where values differ
  int64_t different = 0;  ///< elements whose bits differ
  int64_t elements = 0;
  double largest = 0;   ///< |a - b|; NaN if one is
  double relative = 0;  ///< of norms: |a - b| / |b|
};

/// Of all tensors of two folders, those that differ, in the order of names: of two checkpoints with their optimizer
/// state, of a checkpoint and of what transformers saves without. `done` hears how many tensors were compared.
std::vector<WeightDifference> compare_weights(const std::string& a, const std::string& b,
                                              const std::function<void(int64_t done, int64_t all)>& done = {});

}  // namespace lockstep::trainer
