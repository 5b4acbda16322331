#pragma once
#include <cstdint>

#include "runtime/kernels/attention/attention_loops.h"
#include "runtime/kernels/products/product_loops.h"
#include "runtime/kernels/rows/elementwise_loops.h"
#include "runtime/kernels/rows/low_precision_loops.h"
#include "runtime/kernels/rows/row_loops.h"
#include "runtime/kernels/sums/ordered_sum_loops.h"

/// Kernels of canonical numerics on a GPU: the bits of the CPU's loops, whose names they have, whose headers say what
/// is computed and whose oracles they are tested against. On memory of the current device and asynchronously on its
/// default stream; contiguous where nothing else is said; InternalError when a launch fails. What they compute with is
/// float. Without LOCKSTEP_CUDA a stub stands here (no_cuda.cpp).
namespace lockstep::cuda::canonical {

using kernels::Bfloat16;
using kernels::Contraction;
using kernels::Factor;
using kernels::loops::NumberFormat;
using kernels::loops::OrderedSum;
using kernels::loops::Rows;

/// Input: float and Bfloat16.
template <class Input>
void product(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const Contraction& contraction,
             const kernels::ProductOutput<float>& out);

void ordered_sum(const OrderedSum& sum, const float* x, float* out);
void ordered_exponential_sum(const OrderedSum& sum, const float* x, const float* shift, float* out);
void ordered_norm_gradient(const OrderedSum& sum, const float* g, const float* x, const float* r, float* out);

/// Instead of a token for each position: positions by their token, ascending in each; those of row r of the result are
/// positions[starts[r]] to positions[starts[r + 1] - 1].
void table_gradient(const kernels::loops::TableGradient& shape, const int64_t* positions, const int64_t* starts,
                    const float* gradient, float* out);

void rms_norm(Rows rows, const float* x, const float* weight, float* y, float* reciprocal, float epsilon);
void rms_norm_input_gradient(Rows rows, const float* g, const float* x, const float* reciprocal, const float* weight,
                             float* dx);
/// A target outside 0 .. width - 1 is nowhere.
void cross_entropy_backward(Rows rows, const float* gradient, const float* logits, const float* log_sum,
                            const int64_t* target, float* out);
void swiglu(Rows rows, const float* both, float* out);
void swiglu_backward(Rows rows, const float* gradient, const float* both, float* out);

void softmax(Rows rows, const float* x, float* out);
void log_softmax(Rows rows, const float* x, float* out);
void softmax_backward(Rows rows, const float* g, const float* y, float* out);
void log_softmax_backward(Rows rows, const float* g, const float* y, float* out);

void apply(kernels::loops::Function function, int64_t count, const float* x, float* out);
void apply(kernels::loops::Gradient gradient, int64_t count, const float* g, const float* x, float* out);

void nearest(NumberFormat format, int64_t count, const float* x, float* out);
void scales(NumberFormat format, bool power_of_two, int64_t count, const float* maxima, float* out);
void float8_codes(NumberFormat format, int64_t count, const float* x, uint8_t* out);
void float8_numbers(NumberFormat format, int64_t count, const uint8_t* codes, float* out);
void nearest_in_blocks(NumberFormat format, const kernels::loops::BlockShape& shape, const float* x, float* out);
/// float, and double for the float64 domain of native verification.
template <class T>
void hadamard(int64_t count, int64_t width, T scale, T* rows);

/// Values, and queries' and keys' gradients, have at most kMostHeadElements.
inline constexpr int64_t kMostHeadElements = 256;
template <class Input>
void attention_forward(const kernels::AttentionForward<Input, float>& work);
/// `shared` [batch, heads * group, rows] is memory for what the gradients of keys take from those of queries.
template <class Input>
void attention_backward(const kernels::AttentionBackward<Input, float>& work, float* shared);

}  // namespace lockstep::cuda::canonical
