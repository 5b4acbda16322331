#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/canonical/tree_order.h"

namespace lockstep::cuda::canonical {
namespace {

/// Samples [first_sample, end_sample) of all; in each a tree over positions.
struct Samples {
  int64_t first_here, first_sample, end_sample;
  int64_t length, leaf;
  int height;
};

/// A thread has an element of the table, and goes through the positions of its row.
__global__ void sum_positions(Samples samples, int64_t rows, int64_t width, const int64_t* positions,
                              const int64_t* starts, const float* gradient, float* out) {
  for (int64_t i = own_thread(); i < rows * width; i += all_threads()) {
    const int64_t row = i / width, column = i % width;
    TreeSums<1, kDeepest> sums;
    float chain = 0;
    int64_t leaf = -1;
    for (int64_t p = starts[row]; p < starts[row + 1]; ++p) {
      const int64_t position = positions[p], sample = position / samples.length + samples.first_here;
      if (sample < samples.first_sample || sample >= samples.end_sample) continue;
      const int64_t own = sample << samples.height | position % samples.length / samples.leaf;
      if (own != leaf && leaf >= 0) sums.add(leaf, {chain + 0.0f}), chain = 0;
      leaf = own;
      chain = chain + gradient[position * width + column];
    }
    if (leaf >= 0) sums.add(leaf, {chain + 0.0f});
    out[i] = sums.total()[0];
  }
}

}  // namespace

void table_gradient(const kernels::loops::TableGradient& shape, const int64_t* positions, const int64_t* starts,
                    const float* gradient, float* out) {
  const auto places = SumTree::over_elements(shape.length);
  for (const auto& node : cover(shape.samples, shape.first_sample, shape.sample_count)) {
    const auto [first, end] = elements_of(shape.samples, node);
    const Samples samples{shape.first_sample, first, end, shape.length, places.leaf, places.height};
    launch("table_gradient", sum_positions, shape.rows * shape.width, samples, shape.rows, shape.width, positions,
           starts, gradient, out);
    out += shape.rows * shape.width;
  }
}

}  // namespace lockstep::cuda::canonical
