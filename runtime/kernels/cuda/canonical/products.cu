#include <array>

#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/canonical/tree_order.h"
#include "runtime/kernels/cuda/canonical/widened.h"

namespace lockstep::cuda::canonical {
namespace {

/// One node of a contraction: samples that are here, and in each the elements from `start` to `end`, counted as all
/// ranks do.
struct Node {
  int64_t first_here, first_sample, end_sample;
  int64_t first_element, start, end;  ///< first_element: which one is here first
  int64_t leaf;
  int height;
};

/// A factor's rows, and how far apart they, its samples and its elements are.
template <class Input>
struct FactorRows {
  const Input* data;
  int64_t count, row_stride, sample_stride, element_stride;
};

template <class Input>
struct Operands {
  FactorRows<Input> a, b;

  std::array<const void*, 2> memory() const { return {a.data, b.data}; }
};

/// kStep columns of both factors, for the rows and columns of a tile.
inline constexpr int kSide = 16, kStep = 16;
static_assert(kSide * kSide == kThreads);
template <int kTile>
using Panel = float[kStep][kTile];
template <int kTile>
struct Panels {
  Panel<kTile> left, right;
};

/// Rows from `first` on and `count` elements from `data` on -> shared memory. Rows that there are not are 0. Neighbours
/// in memory are read by neighbours among the threads.
template <int kTile, class Input>
__device__ void read_panel(const FactorRows<Input>& rows, const Input* data, int64_t first, int count,
                           Panel<kTile>& panel) {
  const bool along = rows.element_stride == 1;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kStep; i += static_cast<int>(kThreads)) {
    const int k = along ? i % kStep : i / kTile, row = along ? i / kStep : i % kTile;
    const bool is_there = k < count && first + row < rows.count;
    panel[k][row] = is_there ? widened(data[(first + row) * rows.row_stride + k * rows.element_stride]) : 0.0f;
  }
}

__device__ int own_tile_row() { return static_cast<int>(threadIdx.x) / kSide; }
__device__ int own_tile_column() { return static_cast<int>(threadIdx.x) % kSide; }

/// A thread has kEach x kEach elements of a tile, 16 apart: `count` more links of each one's chain.
template <int kEach>
__device__ void add_products(const Panels<kSide * kEach>& panels, int count, float (&chain)[kEach * kEach]) {
  for (int k = 0; k < count; ++k)
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        chain[i * kEach + j] = portable::fma(panels.left[k][own_tile_row() + i * kSide],
                                             panels.right[k][own_tile_column() + j * kSide], chain[i * kEach + j]);
}

/// The chains over elements [start, end) of a sample, for a tile that begins at a row and a column.
template <int kEach, class Input>
__device__ void leaf_chains(const Operands<Input>& of, int64_t sample, int64_t start, int64_t end, int64_t row,
                            int64_t column, Panels<kSide * kEach>& panels, float (&chain)[kEach * kEach]) {
  for (int64_t at = start; at < end; at += kStep) {
    const int count = end - at < kStep ? static_cast<int>(end - at) : kStep;
    __syncthreads();  // all have read what is there
    read_panel(of.a, of.a.data + sample * of.a.sample_stride + at * of.a.element_stride, row, count, panels.left);
    read_panel(of.b, of.b.data + sample * of.b.sample_stride + at * of.b.element_stride, column, count, panels.right);
    __syncthreads();
    add_products<kEach>(panels, count, chain);
  }
}

/// A block computes tiles of 16 kEach rows and columns: each element in a leaf one chain of fma, and leaves along the
/// tree.
template <int kEach, int kDeep, class Input>
__global__ void product_tiles(Operands<Input> of, Node node, int64_t out_stride, float* out) {
  constexpr int kTile = kSide * kEach;
  __shared__ Panels<kTile> panels;
  const int64_t across = (of.b.count + kTile - 1) / kTile, tiles = (of.a.count + kTile - 1) / kTile * across;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t row = tile / across * kTile, column = tile % across * kTile;
    TreeSums<kEach * kEach, kDeep> sums;
    for (int64_t sample = node.first_sample; sample < node.end_sample; ++sample)
      for (int64_t start = node.start; start < node.end; start += node.leaf) {
        const int64_t end = start + node.leaf < node.end ? start + node.leaf : node.end;
        float chain[kEach * kEach] = {};
        leaf_chains<kEach>(of, sample - node.first_here, start - node.first_element, end - node.first_element, row,
                           column, panels, chain);
        sums.add(sample << node.height | start / node.leaf, chain);
      }
    const auto& total = sums.total();
    for (int i = 0; i < kEach; ++i)
      for (int j = 0; j < kEach; ++j) {
        const int64_t to_row = row + own_tile_row() + i * kSide, to_column = column + own_tile_column() + j * kSide;
        if (to_row < of.a.count && to_column < of.b.count)
          out[to_row * out_stride + to_column] = total[i * kEach + j] + 0.0f;
      }
  }
}

/// Which part of the contraction a node is.
Node part_of(const Contraction& all, const SumNode& node) {
  const auto tree = SumTree::over_elements(all.all_elements);
  Node part{0, 0, 1, all.first_element, all.first_element, all.first_element + all.elements, tree.leaf, tree.height};
  if (all.is_empty_sum()) {
    part.end_sample = 0;
  } else if (all.all_samples == 1) {
    const auto [start, end] = elements_of(tree, node);
    part.start = start, part.end = end;
  } else {
    const auto [first, end] = elements_of(SumTree::over_samples(all.all_samples), node);
    part.first_here = all.first_sample, part.first_sample = first, part.end_sample = end;
  }
  return part;
}

/// Larger tiles read shared memory less often, but a block of them is more of a small product.
constexpr int64_t kLargeProduct = 1024;
/// What waits takes memory of every thread that can be under way.
constexpr int64_t kFewSamples = 256;
constexpr int kDeepestOfFewSamples = 16;
static_assert(SumTree::kMostLeaves * kFewSamples <= 1 << (kDeepestOfFewSamples - 1));

}  // namespace

template <class Input>
void product(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const Contraction& contraction,
             const kernels::ProductOutput<float>& out) {
  const auto nodes = nodes_of(contraction);
  const auto rows = [](int64_t count, const Factor<Input>& factor) {
    return FactorRows<Input>{factor.data, count, factor.row_stride, factor.sample_stride, factor.element_stride};
  };
  const Operands<Input> operands{rows(m, a), rows(n, b)};
  const auto run = [&]<int kEach, int kDeep>(float* to, const Node& node) {
    constexpr int64_t kTile = kSide * kEach;
    const int64_t tiles = (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile);
    launch("product", product_tiles<kEach, kDeep, Input>, tiles * kThreads, operands, node, out.row_stride, to);
  };
  const bool is_large = m >= kLargeProduct && n >= kLargeProduct;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    float* to = out.data + static_cast<int64_t>(p) * out.node_stride;
    const Node node = part_of(contraction, nodes[p]);
    if (contraction.all_samples > kFewSamples)
      run.template operator()<4, kDeepest>(to, node);
    else if (contraction.all_samples > 1)
      run.template operator()<4, kDeepestOfFewSamples>(to, node);
    else if (is_large)
      run.template operator()<8, kDeepestOfElements>(to, node);
    else
      run.template operator()<4, kDeepestOfElements>(to, node);
  }
}

template void product(int64_t, int64_t, const Factor<float>&, const Factor<float>&, const Contraction&,
                      const kernels::ProductOutput<float>&);
template void product(int64_t, int64_t, const Factor<Bfloat16>&, const Factor<Bfloat16>&, const Contraction&,
                      const kernels::ProductOutput<float>&);

}  // namespace lockstep::cuda::canonical
