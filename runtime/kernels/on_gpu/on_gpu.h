#pragma once
#include "core/digest/digest.h"
#include "runtime/kernels/tensors/own_op_signatures.h"

/// The kernels of our own ops for tensors on a GPU, in native numerics: those of runtime/kernels/cuda and LibTorch's
/// fused attention where they take the dtype, composed:: where they do not and in builds without CUDA. Sums are taken
/// in one order, so that the same call gives the same bits.
/// REQUIRES: tensors of the current device, whose current stream is the default one.
namespace lockstep::on_gpu {

using at::Tensor;

signature::RMSNorm rms_norm;
signature::RMSNormBackward rms_norm_backward;
signature::ExponentialSum exponential_sum;
signature::CrossEntropyBackward cross_entropy_backward;
/// float32 and float64 hold a table of all scores; 16-bit types do not where both heads have one size, a multiple of 8
/// up to 256.
signature::Attention attention;
signature::AttentionBackward attention_backward;
signature::SumOfSquares sum_of_squares;
signature::AdamW adamw;
signature::SwiGLU swiglu;
signature::SwiGLUBackward swiglu_backward;
signature::RotatePairs rotate_pairs;
/// Results in bfloat16 by eight-bit products, sums in float32, where all sizes but that of rows are multiples of 16;
/// others by float32 products of what codes stand for.
signature::Float8Linear float8_linear;
/// The same of samples of a multiple of 16 positions; where maxima are bfloat16, as those of bfloat16 factors are.
signature::Float8WeightGradient float8_weight_gradient;

/// What the elements of x, float32 and without gaps, add to a PlaceDigest of the tensor that `key` stands for: they are
/// a box of it of these sizes, whose first element has index `first`; strides are the tensor's. Waits for it.
/// REQUIRES: cuda::has_kernels(), and at most 8 dimensions.
Digest place_sum(const Tensor& x, uint64_t key, uint64_t first, c10::IntArrayRef sizes, c10::IntArrayRef strides);

}  // namespace lockstep::on_gpu
