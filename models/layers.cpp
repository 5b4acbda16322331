#include "models/layers.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "models/cast.h"
#include "models/hooks.h"

namespace lockstep::models {

Embedding::Embedding(Module& owner, std::string name, int64_t count, int64_t width, Initial initial, int64_t unit,
                     const std::string& axis)
    : Module(owner, std::move(name)), weight_(*this, "weight", {count, width}, axis + " embed", initial, {unit, 1}) {}

at::Tensor widened_for(const at::Tensor& parameter, const at::Tensor& x) {
  const bool asks = parameter.scalar_type() == c10::kFloat && c10::isReducedFloatingType(x.scalar_type());
  return asks ? cast(x, c10::kFloat) : x;
}

at::Tensor given_as(const at::Tensor& taken, const at::Tensor& given) {
  const bool was_widened = given.scalar_type() == c10::kFloat && c10::isReducedFloatingType(taken.scalar_type());
  return was_widened ? cast(given, taken.scalar_type()) : given;
}

at::Tensor Embedding::forward(const at::Tensor& rows) {
  const auto open = scope();
  const auto found = at::embedding(weight_, rows);
  const auto* hooks = Hooks::current();
  return weight_.computed_in_float32() && hooks ? cast(found, hooks->compute_type()) : found;
}

Linear::Linear(Module& owner, std::string name, const Options& options)
    : Module(owner, std::move(name)),
      weight_(*this, "weight", {options.out, options.in}, options.axes, options.initial, options.units) {
  if (!options.parts.empty()) weight_.divide(options.parts);
  const auto first = options.axes.substr(0, options.axes.find(' '));
  const auto units = options.units.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{options.units[0]};
  if (options.bias) bias_.emplace(*this, "bias", std::vector<int64_t>{options.out}, first, Initial::fill(0), units);
  if (bias_ && !options.bias_parts.empty()) bias_->divide(options.bias_parts);
}

at::Tensor Linear::forward(const at::Tensor& x) { return given_as(x, unrounded(x)); }

at::Tensor Linear::unrounded(const at::Tensor& x) {
  const auto open = scope();
  const auto bias = bias_ ? std::optional(at::Tensor(*bias_)) : std::nullopt;
  if (quantization_) return quantized(x, bias);
  const at::Tensor weight = weight_;
  if (change_ && adapts()) return change_->forward(x, weight, bias);
  return at::linear(widened_for(weight, x), weight, bias);
}

at::Tensor Linear::quantized(const at::Tensor& x, const std::optional<at::Tensor>& bias) const {
  auto how = *quantization_;
  const auto* hooks = Hooks::current();
  how.weight_is_quantized = weight_.gathered_as_float8() && hooks && hooks->gathers_float8();
  if (how.recipe == LinearRecipe::kTensorwise && hooks && hooks->cache())
    fail<BadInput>(
        "{}: tensorwise float8 has one scale for all tokens of a sample, so tokens cannot be read one after the other "
        "and give what they give together. Read all again for each (--uncached), or choose another recipe.",
        path());
  return quantized_linear(x, weight_, bias, how);
}

RmsNorm::RmsNorm(Module& owner, std::string name, int64_t width, double epsilon)
    : Module(owner, std::move(name)), weight_(*this, "weight", {width}, "embed", Initial::fill(1)), epsilon_(epsilon) {}

at::Tensor RmsNorm::forward(const at::Tensor& x) {
  const auto open = scope();
  const at::Tensor weight = weight_;
  return given_as(x, at::rms_norm(widened_for(weight, x), {x.size(-1)}, weight, epsilon_));
}

LayerNorm::LayerNorm(Module& owner, std::string name, int64_t width, double epsilon)
    : Module(owner, std::move(name)),
      weight_(*this, "weight", {width}, "embed", Initial::fill(1)),
      bias_(*this, "bias", {width}, "embed", Initial::fill(0)),
      epsilon_(epsilon) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) {
  const auto open = scope();
  const at::Tensor weight = weight_, bias = bias_;
  return given_as(x, at::layer_norm(widened_for(weight, x), {x.size(-1)}, weight, bias, epsilon_));
}

at::Tensor dropped(const at::Tensor& x, double share) {
  return share > 0 && trains() ? at::dropout(x, share, /*train=*/true) : x;
}

}  // namespace lockstep::models
