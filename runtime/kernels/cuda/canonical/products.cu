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

/// Of the factors, in elements.
struct Strides {
  int64_t row, sample, element;
};

/// kStep columns of both factors, for the rows and columns of a tile.
inline constexpr int kSide = 16, kStep = 16;
static_assert(kSide * kSide == kThreads);

/// Rows of a factor from `first` on, kTile of them, and positions [at, at + count) of a sample -> shared memory. Rows
/// that there are not are 0. Neighbours in memory are read by neighbours among the threads.
template <int kTile, class Input>
__device__ void read_panel(const Input* data, const Strides& strides, int64_t first, int64_t rows, int count,
                           float (&panel)[kStep][kTile]) {
  for (int i = threadIdx.x; i < kTile * kStep; i += kThreads) {
    const int k = strides.element == 1 ? i % kStep : i / kTile, row = strides.element == 1 ? i / kStep : i % kTile;
    const bool is_there = k < count && first + row < rows;
    panel[k][row] = is_there ? widened(data[(first + row) * strides.row + k * strides.element]) : 0.0f;
  }
}

/// A block computes a tile of 16 kEach rows and columns, a thread kEach x kEach elements of it, 16 apart: each one chain
/// of fma in a leaf, and leaves along the tree.
template <int kEach, int kDeep, class Input>
__global__ void product_tiles(int64_t m, int64_t n, Node node, const Input* a, const Input* b, Strides a_strides,
                              Strides b_strides, int64_t out_stride, float* out) {
  constexpr int kTile = kSide * kEach;
  __shared__ float left[kStep][kTile], right[kStep][kTile];
  const int64_t across = (n + kTile - 1) / kTile, tiles = (m + kTile - 1) / kTile * across;
  const int own_row = static_cast<int>(threadIdx.x) / kSide, own_column = static_cast<int>(threadIdx.x) % kSide;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t row = tile / across * kTile, column = tile % across * kTile;
    TreeSums<kEach * kEach, kDeep> sums;
    for (int64_t sample = node.first_sample; sample < node.end_sample; ++sample) {
      for (int64_t start = node.start; start < node.end; start += node.leaf) {
        const int64_t end = start + node.leaf < node.end ? start + node.leaf : node.end;
        float chain[kEach * kEach] = {};
        for (int64_t at = start; at < end; at += kStep) {
          const int count = end - at < kStep ? static_cast<int>(end - at) : kStep;
          const int64_t here = at - node.first_element, of_sample = sample - node.first_here;
          __syncthreads();  // all have read what is there
          read_panel(a + of_sample * a_strides.sample + here * a_strides.element, a_strides, row, m, count, left);
          read_panel(b + of_sample * b_strides.sample + here * b_strides.element, b_strides, column, n, count, right);
          __syncthreads();
          for (int k = 0; k < count; ++k)
#pragma unroll
            for (int i = 0; i < kEach; ++i)
#pragma unroll
              for (int j = 0; j < kEach; ++j)
                chain[i * kEach + j] = portable::fma(left[k][own_row + i * kSide], right[k][own_column + j * kSide],
                                                     chain[i * kEach + j]);
        }
        sums.add(sample << node.height | start / node.leaf, chain);
      }
    }
    const auto& total = sums.total();
    for (int i = 0; i < kEach; ++i)
      for (int j = 0; j < kEach; ++j) {
        const int64_t to_row = row + own_row + i * kSide, to_column = column + own_column + j * kSide;
        if (to_row < m && to_column < n) out[to_row * out_stride + to_column] = total[i * kEach + j] + 0.0f;
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

}  // namespace

template <class Input>
void product(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const Contraction& contraction,
             const kernels::ProductOutput<float>& out) {
  const auto nodes = nodes_of(contraction);
  const auto strides = [](const Factor<Input>& factor) {
    return Strides{factor.row_stride, factor.sample_stride, factor.element_stride};
  };
  const auto run = [&]<int kEach, int kDeep>(float* to, const Node& node) {
    constexpr int64_t kTile = kSide * kEach;
    const int64_t tiles = (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile);
    launch("product", product_tiles<kEach, kDeep, Input>, tiles * kThreads, m, n, node, a.data, b.data, strides(a),
           strides(b), out.row_stride, to);
  };
  const bool is_large = m >= kLargeProduct && n >= kLargeProduct;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    float* to = out.data + static_cast<int64_t>(p) * out.node_stride;
    const Node node = part_of(contraction, nodes[p]);
    if (contraction.all_samples > 1) run.template operator()<4, kDeepest>(to, node);
    else if (is_large) run.template operator()<8, kDeepestOfElements>(to, node);
    else run.template operator()<4, kDeepestOfElements>(to, node);
  }
}

template void product(int64_t, int64_t, const Factor<float>&, const Factor<float>&, const Contraction&,
                      const kernels::ProductOutput<float>&);
template void product(int64_t, int64_t, const Factor<Bfloat16>&, const Factor<Bfloat16>&, const Contraction&,
                      const kernels::ProductOutput<float>&);

}  // namespace lockstep::cuda::canonical
