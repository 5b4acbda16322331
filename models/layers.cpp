#include "models/layers.h"

#include <ATen/Functions.h>

namespace lockstep::models {

Embedding::Embedding(Module& owner, std::string name, int64_t vocabulary, int64_t width, Initial initial, int64_t unit)
    : Module(owner, std::move(name)),
      weight_(*this, "weight", {vocabulary, width}, "vocab embed", initial, {unit, 1}) {}

at::Tensor Embedding::forward(const at::Tensor& tokens) {
  const auto open = scope();
  return at::embedding(weight_, tokens);
}

Linear::Linear(Module& owner, std::string name, const Options& options)
    : Module(owner, std::move(name)),
      weight_(*this, "weight", {options.out, options.in}, options.axes, options.initial, options.units) {
  if (!options.parts.empty()) weight_.divide(options.parts);
  const auto first = options.axes.substr(0, options.axes.find(' '));
  const auto units = options.units.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{options.units[0]};
  if (options.bias) bias_.emplace(*this, "bias", std::vector<int64_t>{options.out}, first, Initial::fill(0), units);
}

at::Tensor Linear::forward(const at::Tensor& x) {
  const auto open = scope();
  return bias_ ? at::linear(x, weight_, at::Tensor(*bias_)) : at::linear(x, weight_);
}

RmsNorm::RmsNorm(Module& owner, std::string name, int64_t width, double epsilon)
    : Module(owner, std::move(name)), weight_(*this, "weight", {width}, "embed", Initial::fill(1)), epsilon_(epsilon) {}

at::Tensor RmsNorm::forward(const at::Tensor& x) {
  const auto open = scope();
  return at::rms_norm(x, {x.size(-1)}, at::Tensor(weight_), epsilon_);
}

}  // namespace lockstep::models
