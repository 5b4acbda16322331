#include "models/quantized_linear.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "core/elementary/low_precision.h"
#include "core/error.h"
#include "runtime/deferred/deferred_gradients.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/own_ops/parameter_gradients.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;
using elementary::NumberFormat;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int64_t number(NumberFormat format) { return static_cast<int64_t>(format); }

Tensor wide(const Tensor& x) { return x.to(c10::kFloat); }

/// Under one scale for what lies along these dimensions.
Tensor scaled_along(const Tensor& x, std::vector<int64_t> dims, NumberFormat format, bool power_of_two) {
  return mesh_ops::quantize(x, at::amax(at::abs(x), dims, /*keepdim=*/true), number(format), power_of_two);
}

Tensor scaled_as_one(const Tensor& x, NumberFormat format, bool power_of_two) {
  return mesh_ops::quantize(x, mesh_ops::absolute_maximum(x), number(format), power_of_two);
}

/// Of an activation each sample has its own: which samples a microbatch or a rank has changes nothing.
Tensor scaled_by_sample(const Tensor& x, NumberFormat format) {
  if (x.dim() < 3) return scaled_as_one(x, format, false);
  std::vector<int64_t> dims;
  for (int64_t d = 1; d < x.dim(); ++d) dims.push_back(d);
  return scaled_along(x, dims, format, false);
}

/// Blocks along `dim`, each transformed so that lengths stay what they are.
Tensor rotated(const Tensor& x, int64_t block, int64_t dim) {
  if (block == 0) return x;
  const auto last = x.transpose(dim, -1);
  auto sizes = last.sizes().vec();
  if (sizes.back() % block != 0)
    fail<BadInput>(
        "rotations of blocks of {} do not fit a product that sums {} elements; choose a power of two that "
        "divides them",
        block, sizes.back());
  sizes.back() /= block;
  sizes.push_back(block);
  const double scale = 1 / std::sqrt(static_cast<double>(block));
  const auto turned = mesh_ops::hadamard_transform(wide(last).reshape(sizes), scale);
  return turned.reshape(last.sizes()).transpose(dim, -1);
}

/// The factors of one of the products.
struct Factors {
  Tensor left, right;
};

/// What a recipe makes of the factors of the three products: `x` [batch, ..., k], `weight` [n, k] and `gradient`
/// [batch, ..., n].
class Recipe {
 public:
  explicit Recipe(const LinearQuantization& quantization) : quantization_(quantization) {}

  Tensor input(const Tensor& x) const { return along(turned(x, -1), -1, NumberFormat::kE4m3); }
  Tensor gradient(const Tensor& g) const { return along(turned(g, -1), -1, NumberFormat::kE5m2); }
  /// `summed`: 1 in the forward product, 0 in the input's gradient.
  Tensor weight(const Tensor& weight, int64_t summed) const {
    if (quantization_.weight_is_quantized) return weight;
    const bool is_one = is(LinearRecipe::kTensorwise) || (is(LinearRecipe::kRowwiseExactWeightGradient) && summed == 0);
    if (is(LinearRecipe::kInt8Weights)) return scaled_along(weight, {1}, NumberFormat::kInt8, false);
    const auto factor = turned(weight, summed);
    return is_one ? scaled_as_one(factor, NumberFormat::kE4m3, !is(LinearRecipe::kTensorwise))
                  : along(factor, summed, NumberFormat::kE4m3);
  }

  /// Sums over positions: the dimension before the last.
  Factors of_weight_gradient(const Tensor& g, const Tensor& x) const {
    if (is(LinearRecipe::kRowwiseExactWeightGradient)) return {wide(g), wide(x)};
    return {along(g, -2, NumberFormat::kE5m2), along(x, -2, NumberFormat::kE4m3)};
  }

 private:
  bool is(LinearRecipe recipe) const { return quantization_.recipe == recipe; }
  Tensor turned(const Tensor& x, int64_t dim) const { return rotated(x, quantization_.rotated_block, dim); }

  /// `tensorwise`: of the tensorwise recipe, whose scale does not depend on what is summed over.
  Tensor along(const Tensor& x, int64_t summed, NumberFormat tensorwise) const {
    switch (quantization_.recipe) {
      case LinearRecipe::kInt8Weights:
        return wide(x);
      case LinearRecipe::kTensorwise:
        return scaled_by_sample(x, tensorwise);
      case LinearRecipe::kMxfp8:
        return mesh_ops::quantize_blocks(x, summed, number(NumberFormat::kE4m3));
      case LinearRecipe::kMxfp4:
        return mesh_ops::quantize_blocks(x, summed, number(NumberFormat::kE2m1));
      default:
        return scaled_along(x, {summed}, NumberFormat::kE4m3, true);
    }
  }

  LinearQuantization quantization_;
};

/// As torch's to(), but an unfinished sum stays one.
Tensor in_dtype(const Tensor& x, c10::ScalarType dtype) { return is_sharded(x) ? declared_as(x, dtype) : x.to(dtype); }

Tensor weight_gradient(const Factors& factors) {
  return is_sharded(factors.left) ? linear_weight_gradient(factors.left, factors.right)
                                  : mesh_ops::weight_gradient(factors.left, factors.right);
}

Tensor summed_rows(const Tensor& gradient) {
  if (is_sharded(gradient)) return bias_gradient(gradient);
  return gradient.dim() == 1 ? gradient : gradient.flatten(0, -2).sum(0);
}

struct QuantizedLinear : torch::autograd::Function<QuantizedLinear> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias, const LinearQuantization* quantization) {
    context->save_for_backward({x, weight});
    context->saved_data["recipe"] = static_cast<int64_t>(quantization->recipe);
    context->saved_data["rotated_block"] = quantization->rotated_block;
    context->saved_data["weight_is_quantized"] = quantization->weight_is_quantized;
    context->saved_data["has_bias"] = bias.has_value();
    const at::AutoDispatchBelowAutograd below;
    const Recipe recipe(*quantization);
    const auto wide_bias = bias ? std::optional(wide(*bias)) : std::nullopt;
    return in_dtype(at::linear(recipe.input(x), recipe.weight(weight, 1), wide_bias), x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (own_ops::is_differentiated_again())
      fail<BadInput>("a quantised linear map has no second derivative: what rounds has none");
    const auto saved = context->get_saved_variables();
    const auto &g = gradients[0], &x = saved[0], &weight = saved[1];
    const Recipe recipe({static_cast<LinearRecipe>(context->saved_data["recipe"].toInt()),
                         context->saved_data["rotated_block"].toInt(),
                         context->saved_data["weight_is_quantized"].toBool()});
    variable_list result(4);
    if (context->needs_input_grad(0))
      result[0] = in_dtype(at::matmul(recipe.gradient(g), recipe.weight(weight, 0)), x.scalar_type());
    const auto of_weight = [recipe, dtype = weight.scalar_type()](const Tensor& g, const Tensor& x) {
      return in_dtype(weight_gradient(recipe.of_weight_gradient(g, x)), dtype);
    };
    if (context->needs_input_grad(1) && DeferredGradients::may_wait(weight))
      DeferredGradients::put_off(weight,
                                 [of_weight, g = g.tensor_data(), x = x.tensor_data()] { return of_weight(g, x); });
    else if (context->needs_input_grad(1))
      result[1] = of_weight(g, x);
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) result[2] = summed_rows(g);
    return result;
  }
};

}  // namespace

Tensor quantized_linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                        const LinearQuantization& quantization) {
  if (x.dim() == 1) return quantized_linear(x.unsqueeze(0), weight, bias, quantization).squeeze(0);
  return QuantizedLinear::apply(x, weight, bias, &quantization);
}

Tensor quantized_weight(const Tensor& weight, const LinearQuantization& quantization) {
  return Recipe(quantization).weight(weight, 1);
}

}  // namespace lockstep
