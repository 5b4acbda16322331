#pragma once
#include <cstdint>

#include "core/elementary/low_precision.h"
#include "runtime/kernels/rows/adamw_step.h"

/// Kernels of our own ops on a GPU, each one pass over its rows, on memory of the current device and asynchronously on
/// its default stream. Computed in float; sums in one order whatever the run, so that results repeat. Native numerics:
/// a CPU's values but for rounding. What each computes is documented in runtime/own_ops/mesh_ops.h. Memory is
/// contiguous where nothing else is said; InternalError when a launch fails. Without LOCKSTEP_CUDA a stub stands here
/// (no_cuda.cpp).
namespace lockstep::cuda {

/// Whether what follows may be called.
bool has_kernels();

enum class Element { kFloat32, kBFloat16 };

/// `count` rows of `size` elements.
struct Rows {
  int64_t count, size;
};

/// x [rows] and weight [size] -> y, reciprocals [count].
void rms_norm(Element element, Rows rows, const void* x, const void* weight, float epsilon, void* y,
              float* reciprocals);

/// In how many parts rows are summed for the gradient of the weight.
int64_t norm_parts(Rows rows);
/// dx, and for each of norm_parts() its sum over its rows: weight_sums [parts, size].
void rms_norm_backward(Element element, Rows rows, const void* gradient, const void* x, const float* reciprocals,
                       const void* weight, void* dx, float* weight_sums);

/// both [count, 2, size] -> out [count, size]; and back.
void swiglu(Element element, Rows rows, const void* both, void* out);
void swiglu_backward(Element element, Rows rows, const void* gradient, const void* both, void* out);

/// Elements between neighbours of x in a batch, among heads and in a sequence; along the last dimension it is 1.
struct HeadStrides {
  int64_t batch, head, position;
};
/// x [batch, heads, length, size] by its strides -> out in memory [batch, length, heads, size].
/// REQUIRES: size is even; out has fewer than 2^32 elements.
struct HeadSizes {
  int64_t batch, heads, length, size;
};
void rotate_pairs(Element element, HeadSizes sizes, HeadStrides strides, const void* x, const float* cosines,
                  const float* sines, bool back, void* out);

/// logits [rows], shift [count] -> sums [count].
void exponential_sum(Element element, Rows rows, const void* logits, const float* shift, float* sums);
/// gradient, log_sum, target [count]; a target outside 0 .. size - 1 is nowhere.
void cross_entropy_backward(Element element, Rows rows, const float* gradient, const void* logits, const float* log_sum,
                            const int64_t* target, void* out);

/// x [outer, count, size] beside scales of the same number of dimensions: elements between neighbouring scales along
/// each, 0 where one scale is of all.
struct ScaledRows {
  int64_t outer, count, size;
  int64_t outer_stride, row_stride, element_stride;
};
/// The codes of what is nearest to x times its scale: bits of canonical numerics.
void float8_codes(Element element, elementary::NumberFormat format, const ScaledRows& rows, const void* x,
                  const float* scales, uint8_t* out);
/// in [rows, columns] -> out [columns, rows].
void transpose_bytes(int64_t rows, int64_t columns, const uint8_t* in, uint8_t* out);

/// Parameter, gradient, mean, square: as kernels::loops::adamw.
void adamw(int64_t count, float* parameter, const float* gradient, float* mean, float* square,
           const kernels::loops::AdamwStep<float>& step);

/// How many sums of parts of x sum_of_squares writes.
int64_t square_parts(int64_t count);
void sum_of_squares(Element element, int64_t count, const void* x, double* sums);

/// Where the elements of memory without gaps lie in a tensor: in a box of it, outermost dimension first.
struct PlaceBox {
  static constexpr int kMostDims = 8;
  uint64_t first;  ///< index of the box's first element
  int dims;
  int64_t size[kMostDims], stride[kMostDims];  ///< strides are the tensor's
};
/// What the elements of x add to a PlaceDigest (core/digest): lows and highs [square_parts(count)] add up to it.
void place_sums(int64_t count, const uint32_t* x, uint64_t key, const PlaceBox& box, uint64_t* lows, uint64_t* highs);

}  // namespace lockstep::cuda
