#pragma once
#include <array>
#include <cmath>

#include "rng/philox.h"
#include "runtime/kernels/attention/attention_numbers.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/canonical/tree_order.h"
#include "runtime/kernels/cuda/canonical/widened.h"

/// What attention's kernels have in common: a warp works on one row, of queries or of keys.
namespace lockstep::cuda::canonical {

using kernels::AttentionShape;
using kernels::HeadTensor;

/// Elements of a row that a thread has: every 32nd.
inline constexpr int kColumns = static_cast<int>(kMostHeadElements / kWarp);

/// run(c, element) for those of a row of so many.
template <class Run>
__device__ void for_own_columns(int64_t width, const Run& run) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    if (own_lane() + c * kWarp < width) run(c, own_lane() + c * kWarp);
}

/// One row of a head.
template <class T>
struct HeadRow {
  T* data;
  int64_t stride;

  __device__ HeadRow(const HeadTensor<T>& tensor, int64_t batch, int64_t head, int64_t row)
      : data(tensor.data + batch * tensor.batch_stride + head * tensor.head_stride + row * tensor.row_stride),
        stride(tensor.element_stride) {}
  __device__ T& operator[](int64_t i) const { return data[i * stride]; }
};

template <class A, class B>
__device__ float dot(const HeadRow<A>& a, const HeadRow<B>& b, int64_t size) {
  float chain = 0;
  for (int64_t i = 0; i < size; ++i) chain = portable::fma(widened(a[i]), widened(b[i]), chain);
  return chain;
}

/// The numbers of a call.
struct Scales {
  float base_two, plain;
  uint64_t kept_below = 0;  ///< a weight whose word is below it is kept
  float kept = 1;           ///< what it is multiplied by
  bool drops = false;

  explicit Scales(const AttentionShape& shape)
      : base_two(static_cast<float>(shape.scale * kernels::kLog2E)), plain(static_cast<float>(shape.scale)) {
    if (!(shape.dropout.share > 0)) return;
    const double share = 1 - shape.dropout.share;
    drops = true, kept = share > 0 ? static_cast<float>(1 / share) : 0.0f;
    kept_below = static_cast<uint64_t>(std::nearbyint(std::ldexp(share, 32)));
  }

  /// Of a query row and a key: docs/rng.md's Bernoulli.
  __device__ float dropout_factor(const AttentionShape& shape, int64_t batch, int64_t head, int64_t row,
                                  int64_t key) const {
    if (!drops) return 1;
    const HeadRow<const int64_t> draws(shape.dropout.draws, batch, head, row);
    const auto element = static_cast<uint64_t>(draws[2] + key - (shape.first_row + row));
    const auto words = rng::words({static_cast<uint64_t>(draws[0])}, {element / 4, static_cast<uint64_t>(draws[1])});
    return words.word[element % 4] < kept_below ? kept : 0.0f;
  }
};

}  // namespace lockstep::cuda::canonical
