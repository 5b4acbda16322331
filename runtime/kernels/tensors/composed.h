#pragma once
#include "runtime/kernels/tensors/own_op_signatures.h"

/// Our own ops composed of LibTorch's, for devices that have no loops of ours: a few times the memory traffic, the same
/// values but for rounding. Native numerics only: what canonical numerics alone needs is left out.
namespace lockstep::composed {

using at::Tensor;

signature::WeightGradient weight_gradient;
signature::RMSNorm rms_norm;
signature::RMSNormBackward rms_norm_backward;
signature::ExponentialSum exponential_sum;
signature::PickClass pick_class;
signature::CrossEntropyBackward cross_entropy_backward;
/// Memory grows with the product of both lengths.
signature::Attention attention;
signature::AttentionBackward attention_backward;
signature::DocumentAttention document_attention;
signature::DocumentAttentionBackward document_attention_backward;
signature::SumOfSquares sum_of_squares;
signature::AdamW adamw;
signature::SwiGLU swiglu;
signature::SwiGLUBackward swiglu_backward;
signature::RotatePairs rotate_pairs;

}  // namespace lockstep::composed
