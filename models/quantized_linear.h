#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace lockstep {

/// What the three products of a linear map multiply, in training and in its backward pass (docs/low_precision.md). The
/// recipes and their names are those of torchao (torchao/float8/config.py, torchao/prototype/mx_formats/config.py).
enum class LinearRecipe {
  /// E4M3 of inputs and weights, E5M2 of gradients; one scale for a weight, one for each sample of an activation.
  kTensorwise,
  /// E4M3 of everything; one power of two for each row or column, along what is summed over; of sums over positions,
  /// for each sample.
  kRowwise,
  /// As kRowwise, but weights whose columns are summed have one scale, and gradients of weights are not quantised.
  kRowwiseExactWeightGradient,
  /// E4M3 or E2M1 of everything, in blocks of 32 along what is summed over; of sums over positions, of a sample.
  kMxfp8,
  kMxfp4,
  /// Weights alone, as symmetric eight-bit integers with one scale for each row: for generation.
  kInt8Weights,
};

struct LinearQuantization {
  LinearRecipe recipe = LinearRecipe::kTensorwise;
  /// The factors of the forward product and of the input's gradient are turned before they are quantised, by a Hadamard
  /// transform of blocks of so many of the elements that the product sums over, which stays what it is but for
  /// rounding. 0: not at all; else a power of two, which divides k and n.
  int64_t rotated_block = 0;
  /// The weight's values are quantised already, and float32 (kTensorwise).
  bool weight_is_quantized = false;
};

/// x [batch, ..., k], weight [n, k], bias [n] -> x W^T + b [batch, ..., n] in x's dtype, every product of what the
/// recipe makes of its factors: float32 numbers, multiplied and added as canonical numerics does. Differentiable; what
/// is rounded passes its gradient on unchanged. Takes plain tensors and sharded ones, whose scales are those of the
/// whole tensor, row or block, however it is cut.
at::Tensor quantized_linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            const LinearQuantization& quantization);

/// What the recipe makes of the weight for the forward product: float32.
at::Tensor quantized_weight(const at::Tensor& weight, const LinearQuantization& quantization);

}  // namespace lockstep
