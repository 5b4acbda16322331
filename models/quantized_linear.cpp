#include "models/quantized_linear.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "core/elementary/low_precision.h"
#include "core/error.h"
#include "runtime/context/world.h"
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

/// One side of a product: numbers as they are, or of eight bits under scales.
class Factor {
 public:
  explicit Factor(Tensor numbers) : x_(std::move(numbers)) {}
  Factor(Tensor x, Tensor maximum, NumberFormat format, bool power_of_two)
      : x_(std::move(x)), maximum_(std::move(maximum)), format_(format), power_of_two_(power_of_two) {}

  /// E4M3 under one scale each already.
  static Factor of_quantized(Tensor numbers) {
    Factor factor(std::move(numbers));
    factor.format_ = NumberFormat::kE4m3;
    return factor;
  }

  bool has_codes() const { return format_ == NumberFormat::kE4m3 || format_ == NumberFormat::kE5m2; }
  int64_t format() const { return number(*format_); }
  bool power_of_two() const { return power_of_two_; }

  /// float32, but where they are as they came.
  Tensor numbers() const { return maximum_.defined() ? mesh_ops::quantize(x_, maximum_, format(), power_of_two_) : x_; }

  /// For products of codes: the codes, and the maximum of each row, along dimension `summed`, which has one element.
  std::pair<Tensor, Tensor> codes(int64_t summed) const {
    const auto maximum = maximum_.defined() ? maximum_ : mesh_ops::absolute_maximum(x_);
    auto sizes = x_.sizes().vec();
    sizes[static_cast<size_t>(summed < 0 ? summed + x_.dim() : summed)] = 1;
    return {mesh_ops::float8_codes(x_, maximum, format(), power_of_two_), maximum.expand(sizes)};
  }

 private:
  Tensor x_, maximum_;
  std::optional<NumberFormat> format_;
  bool power_of_two_ = false;
};

/// Under one scale for what lies along these dimensions.
Factor scaled_along(const Tensor& x, std::vector<int64_t> dims, NumberFormat format, bool power_of_two) {
  return {x, at::amax(at::abs(x), dims, /*keepdim=*/true), format, power_of_two};
}

Factor scaled_as_one(const Tensor& x, NumberFormat format, bool power_of_two) {
  return {x, mesh_ops::absolute_maximum(x), format, power_of_two};
}

/// Of an activation each sample has its own: which samples a microbatch or a rank has changes nothing.
Factor scaled_by_sample(const Tensor& x, NumberFormat format) {
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

/// What a recipe makes of the factors of the three products: `x` [batch, ..., k], `weight` [n, k] and `gradient`
/// [batch, ..., n].
class Recipe {
 public:
  explicit Recipe(const LinearQuantization& quantization) : quantization_(quantization) {}

  Factor input(const Tensor& x) const { return along(turned(x, -1), -1, NumberFormat::kE4m3); }
  Factor gradient(const Tensor& g) const { return along(turned(g, -1), -1, NumberFormat::kE5m2); }
  /// `summed`: 1 in the forward product, 0 in the input's gradient.
  Factor weight(const Tensor& weight, int64_t summed) const {
    if (quantization_.weight_is_quantized) return Factor::of_quantized(weight);
    const bool is_one = is(LinearRecipe::kTensorwise) || (is(LinearRecipe::kRowwiseExactWeightGradient) && summed == 0);
    if (is(LinearRecipe::kInt8Weights)) return scaled_along(weight, {1}, NumberFormat::kInt8, false);
    const auto factor = turned(weight, summed);
    return is_one ? scaled_as_one(factor, NumberFormat::kE4m3, !is(LinearRecipe::kTensorwise))
                  : along(factor, summed, NumberFormat::kE4m3);
  }

  /// Of the weight's gradient, which sums over positions: the dimension before the last.
  Factor summed_gradient(const Tensor& g) const { return along_positions(g, NumberFormat::kE5m2); }
  Factor summed_input(const Tensor& x) const { return along_positions(x, NumberFormat::kE4m3); }

 private:
  bool is(LinearRecipe recipe) const { return quantization_.recipe == recipe; }
  Tensor turned(const Tensor& x, int64_t dim) const { return rotated(x, quantization_.rotated_block, dim); }

  Factor along_positions(const Tensor& x, NumberFormat tensorwise) const {
    return is(LinearRecipe::kRowwiseExactWeightGradient) ? Factor(x) : along(x, -2, tensorwise);
  }

  /// `tensorwise`: of the tensorwise recipe, whose scale does not depend on what is summed over.
  Factor along(const Tensor& x, int64_t summed, NumberFormat tensorwise) const {
    switch (quantization_.recipe) {
      case LinearRecipe::kInt8Weights:
        return Factor(x);
      case LinearRecipe::kTensorwise:
        return scaled_by_sample(x, tensorwise);
      case LinearRecipe::kMxfp8:
        return Factor(mesh_ops::quantize_blocks(x, summed, number(NumberFormat::kE4m3)));
      case LinearRecipe::kMxfp4:
        return Factor(mesh_ops::quantize_blocks(x, summed, number(NumberFormat::kE2m1)));
      default:
        return scaled_along(x, {summed}, NumberFormat::kE4m3, true);
    }
  }

  LinearQuantization quantization_;
};

/// As torch's to(), but an unfinished sum stays one.
Tensor in_dtype(const Tensor& x, c10::ScalarType dtype) { return is_sharded(x) ? declared_as(x, dtype) : x.to(dtype); }

/// How factors are multiplied. Canonical numerics multiplies float32 numbers, on every device. Native ones are for
/// speed: codes, which a GPU multiplies as they are, and numbers that 16 bits hold in 16 bits.
class Products {
 public:
  Products(const Tensor& x, LinearRecipe recipe)
      : dtype_(x.scalar_type()),
        is_native_(is_sharded(x) && !layout_of(x).mesh().world().canonical()),
        are_exact_in_16_bits_(is_native_ && dtype_ == c10::kBFloat16 &&
                              (recipe == LinearRecipe::kMxfp8 || recipe == LinearRecipe::kMxfp4 ||
                               recipe == LinearRecipe::kRowwiseExactWeightGradient)) {}

  /// left [batch, ..., k], right [n, k] -> [batch, ..., n] in the dtype of x.
  Tensor linear(const Factor& left, const Factor& right, const std::optional<Tensor>& bias) const {
    if (!of_codes(left, right)) {
      const auto wide_bias = bias ? std::optional(of_sum(*bias)) : std::nullopt;
      return in_dtype(at::linear(of_sum(left.numbers()), of_sum(right.numbers()), wide_bias), dtype_);
    }
    const auto [x, x_maxima] = left.codes(-1);
    const auto [weight, weight_maxima] = right.codes(1);
    const auto product =
        mesh_ops::float8_linear(x, x_maxima, weight, weight_maxima, left.format(), left.power_of_two(), dtype_);
    return bias ? at::add(product, bias->to(dtype_)) : product;
  }

  /// left [batch, ..., n], right [n, k] -> [batch, ..., k].
  Tensor back(const Factor& left, const Factor& right) const {
    if (!of_codes(left, right)) return in_dtype(at::matmul(of_sum(left.numbers()), of_sum(right.numbers())), dtype_);
    const auto [g, g_maxima] = left.codes(-1);
    const auto [weight, weight_maxima] = right.codes(0);
    return mesh_ops::float8_linear(g, g_maxima, weight.t(), weight_maxima.t(), left.format(), left.power_of_two(),
                                   dtype_);
  }

  /// left [batch, ..., n], right [batch, ..., k] -> [n, k], summed over positions and samples, in `dtype`.
  Tensor over_positions(const Factor& left, const Factor& right, c10::ScalarType dtype) const {
    if (of_codes(left, right)) {
      const auto [gradient, gradient_maxima] = left.codes(-2);
      const auto [input, input_maxima] = right.codes(-2);
      return in_dtype(mesh_ops::float8_weight_gradient(gradient, gradient_maxima, input, input_maxima, left.format(),
                                                       left.power_of_two()),
                      dtype);
    }
    const auto g = of_sum(left.numbers()), x = of_sum(right.numbers());
    return in_dtype(is_sharded(g) ? linear_weight_gradient(g, x) : mesh_ops::weight_gradient(g, x), dtype);
  }

 private:
  bool of_codes(const Factor& left, const Factor& right) const {
    return is_native_ && left.has_codes() && right.has_codes();
  }
  Tensor of_sum(const Tensor& x) const { return are_exact_in_16_bits_ ? x.to(dtype_) : wide(x); }

  c10::ScalarType dtype_;
  bool is_native_, are_exact_in_16_bits_;
};

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
    return Products(x, quantization->recipe).linear(recipe.input(x), recipe.weight(weight, 1), bias);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (own_ops::is_differentiated_again())
      fail<BadInput>("a quantised linear map has no second derivative: what rounds has none");
    const auto saved = context->get_saved_variables();
    const auto &g = gradients[0], &x = saved[0], &weight = saved[1];
    const LinearQuantization quantization{static_cast<LinearRecipe>(context->saved_data["recipe"].toInt()),
                                          context->saved_data["rotated_block"].toInt(),
                                          context->saved_data["weight_is_quantized"].toBool()};
    const Recipe recipe(quantization);
    const Products products(x, quantization.recipe);
    variable_list result(4);
    if (context->needs_input_grad(0)) result[0] = products.back(recipe.gradient(g), recipe.weight(weight, 0));
    const auto of_weight = [recipe, products, dtype = weight.scalar_type()](const Tensor& g, const Tensor& x) {
      return products.over_positions(recipe.summed_gradient(g), recipe.summed_input(x), dtype);
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
  return wide(Recipe(quantization).weight(weight, 1).numbers());
}

}  // namespace lockstep
