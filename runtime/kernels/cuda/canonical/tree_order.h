#pragma once
#include <cuda_runtime.h>

#include "core/elementary/portable.h"
#include "runtime/kernels/cuda/launch.h"
#include "runtime/kernels/simd/lane_count.h"
#include "runtime/kernels/sums/sum_tree.h"

/// The order of the one tree (runtime/kernels/sums/sum_tree.h) in a thread, and that of lanes among threads.
namespace lockstep::cuda::canonical {

/// Sums of leaves that come left to right, kWide sums side by side. Leaves may be absent: they add nothing. What waits
/// is joined as soon as the leaf that comes lies behind it and its sibling.
template <int kWide, int kDeepest>
class TreeSums {
 public:
  /// `index` counts all leaves of the tree; for nested trees, the outer ones' as high bits.
  __device__ void add(int64_t index, const float (&leaf)[kWide]) {
    if (depth_ > 0) {
      const int apart = height_between(last_, index);
      while (depth_ > 1 && height_[depth_ - 2] < apart) join();
      height_[depth_ - 1] = static_cast<int8_t>(apart);
    }
    last_ = index;
    for (int i = 0; i < kWide; ++i) waiting_[depth_][i] = leaf[i];
    ++depth_;
  }

  /// Of all that came, +0 of none. Once.
  __device__ const float (&total())[kWide] {
    while (depth_ > 1) join();
    if (depth_ == 0)
      for (int i = 0; i < kWide; ++i) waiting_[0][i] = 0;
    return waiting_[0];
  }

 private:
  /// Of the least subtree that has both.
  __device__ static int height_between(int64_t left, int64_t right) {
    int height = 0;
    for (auto differ = static_cast<uint64_t>(left ^ right); differ != 0; differ >>= 1) ++height;
    return height;
  }
  __device__ void join() {
    --depth_;
    for (int i = 0; i < kWide; ++i) waiting_[depth_ - 1][i] = waiting_[depth_ - 1][i] + waiting_[depth_][i];
    height_[depth_ - 1] = height_[depth_];
  }

  float waiting_[kDeepest][kWide];
  int8_t height_[kDeepest];  ///< of the least subtree that has this one and the next
  int64_t last_ = 0;
  int depth_ = 0;
};

/// Most that waits in a tree of 2^h leaves: h + 1. Of elements, and of anything.
inline constexpr int kDeepestOfElements = 8, kDeepest = 48;
static_assert(SumTree::kMostLeaves <= 1 << (kDeepestOfElements - 1));

/// The leaves of a node that are there.
struct NodeLeaves {
  int64_t size, leaf, first, count;
};
inline NodeLeaves leaves_of(const SumTree& tree, const SumNode& node) {
  const int64_t first = node.index << node.height, all = tree.leaf_count();
  return {tree.size, tree.leaf, first, std::min(int64_t{1} << node.height, std::max<int64_t>(all - first, 0))};
}

/// leaf(start, end) gives that of the elements [start, end).
template <class Leaf>
__device__ float node_sum(const NodeLeaves& leaves, const Leaf& leaf) {
  TreeSums<1, kDeepest> sums;
  for (int64_t place = leaves.first; place < leaves.first + leaves.count; ++place) {
    const int64_t start = place * leaves.leaf, end = start + leaves.leaf;
    sums.add(place, {leaf(start, end < leaves.size ? end : leaves.size)});
  }
  return sums.total()[0];
}

/// A row has kSumLanes threads, one for each lane.
inline constexpr int kLanes = kernels::kSumLanes;
__device__ inline int64_t own_row() { return own_thread() / kLanes; }
__device__ inline int64_t all_rows() { return all_threads() / kLanes; }
__device__ inline int lane_of_row() { return static_cast<int>(threadIdx.x % kLanes); }
__device__ inline unsigned threads_of_row() { return 0xffffu << (threadIdx.x % kWarp / kLanes * kLanes); }

/// Lanes 8 apart are added, then 4, 2 and 1: the same bits in all threads of the row, or of a warp's half that has one.
__device__ inline float sum_of_lanes(float lane) {
  for (int apart = kLanes / 2; apart > 0; apart /= 2)
    lane = lane + __shfl_xor_sync(threads_of_row(), lane, apart, kLanes);
  return lane;
}

/// The sum of term(i) over [start, end), of which the first is lane 0's.
template <class Term>
__device__ float lanes_sum(int64_t start, int64_t end, const Term& term) {
  float own = 0;
  for (int64_t i = start + lane_of_row(); i < end; i += kLanes) own = own + term(i);
  return sum_of_lanes(own);
}

/// The same of a row's tree.
template <class Term>
__device__ float row_sum(const NodeLeaves& leaves, const Term& term) {
  return node_sum(leaves, [&](int64_t start, int64_t end) { return lanes_sum(start, end, term); });
}

}  // namespace lockstep::cuda::canonical
