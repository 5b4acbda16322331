#pragma once
#include "runtime/kernels/tensors/own_op_signatures.h"

/// The kernels of our own ops for plain tensors: of a CPU, and of a GPU where canonical numerics has a kernel for it
/// (runtime/kernels/cuda/canonical). What each computes is documented in runtime/own_ops/mesh_ops.h.
namespace lockstep::kernels {

using at::Tensor;

signature::WeightGradient weight_gradient;
signature::RMSNorm rms_norm;
signature::RMSNormBackward rms_norm_backward;
signature::ExponentialSum exponential_sum;
signature::PickClass pick_class;
signature::CrossEntropyBackward cross_entropy_backward;
signature::Attention attention;
signature::AttentionBackward attention_backward;
signature::DocumentAttention document_attention;
signature::DocumentAttentionBackward document_attention_backward;
signature::AttentionDraws attention_draws;
signature::SumOfSquares sum_of_squares;
signature::AdamW adamw;
signature::SwiGLU swiglu;
signature::SwiGLUBackward swiglu_backward;
signature::RotatePairs rotate_pairs;

// Of canonical numerics alone.
Tensor rms_norm_input_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal, const Tensor& weight);
Tensor rms_norm_weight_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal);
Tensor fixed_point_sum(const Tensor& x);
Tensor absolute_maximum(const Tensor& x);
Tensor scaled_squares(const Tensor& x, double scale);

// Numbers of few bits (docs/low_precision.md).
Tensor quantize(const Tensor& x, const Tensor& maximum, int64_t format, bool power_of_two);
Tensor quantize_blocks(const Tensor& x, int64_t dim, int64_t format);
Tensor float8_codes(const Tensor& x, const Tensor& maximum, int64_t format, bool power_of_two);
Tensor float8_numbers(const Tensor& codes, const Tensor& maximum, int64_t format, bool power_of_two);
signature::Float8Linear float8_linear;
signature::Float8WeightGradient float8_weight_gradient;
/// What numbers are divided by after they were multiplied by it; float32, of the maximum's sizes.
Tensor float8_scales(const Tensor& maximum, int64_t format, bool power_of_two);
Tensor hadamard_transform(const Tensor& x, double scale);

}  // namespace lockstep::kernels
