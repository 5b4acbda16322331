#include "models/low_rank.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "models/layers.h"
#include "runtime/own_ops/parameter_gradients.h"

namespace lockstep::models {
namespace {

constexpr double kShortest = 1e-30;

/// "layers.0.wq.weight" -> "layers.0.wq"
std::string without_kind(const std::string& name) { return name.substr(0, name.rfind('.')); }

/// "layers.0.wq+wk+wv.lora_a"
std::string name_of_a(const Division& division) {
  std::string name;
  for (const auto& part : division.parts()) {
    const auto path = without_kind(part.name);
    name = name.empty() ? path : name + "+" + path.substr(path.rfind('.') + 1);
  }
  return name + ".lora_a";
}

/// What a parameter of as many rows as `division` divides into.
std::vector<Part> parts_of(const Division& division, const std::string& kind, const Initial& initial) {
  auto parts = division.parts();
  for (auto& part : parts) part.name = without_kind(part.name) + "." + kind, part.initial = initial;
  return parts;
}

Initial uniform_by(int64_t columns) {
  const double most = 1 / std::sqrt(static_cast<double>(columns));
  return Initial::drawn(rng::uniform(-most, most));
}

std::string first_axis(const Parameter& weight) { return weight.axes().substr(0, weight.axes().find(' ')); }
std::string second_axis(const Parameter& weight) { return weight.axes().substr(weight.axes().find(' ') + 1); }

}  // namespace

at::Tensor row_lengths(const at::Tensor& matrix) {
  const auto x = matrix.to(c10::kFloat);
  return at::clamp_min(at::sqrt(at::sum(at::mul(x, x), {1})), kShortest);
}

LowRankChange::LowRankChange(Module& owner, const Parameter& weight, const LowRankOptions& options)
    : options_(options),
      a_(owner, "lora_a", {options.rank, weight.sizes()[1]}, "rank " + second_axis(weight),
         uniform_by(weight.sizes()[1]), {1, weight.units()[1]}),
      b_(owner, "lora_b", {weight.sizes()[0], options.rank}, first_axis(weight) + " rank", Initial::fill(0),
         {weight.units()[0], 1}) {
  a_.store_as(name_of_a(weight.division()));
  b_.divide(parts_of(weight.division(), "lora_b", Initial::fill(0)));
  if (options.magnitude) {
    magnitude_.emplace(owner, "magnitude", std::vector<int64_t>{weight.sizes()[0]}, first_axis(weight),
                       Initial::fill(1), std::vector<int64_t>{weight.units()[0]});
    magnitude_->divide(parts_of(weight.division(), "magnitude", Initial::fill(1)));
  }
  for (auto* parameter : {&a_, &b_, magnitude()})
    if (parameter) parameter->set_adapter();
}

at::Tensor LowRankChange::forward(const at::Tensor& x, const at::Tensor& weight,
                                  const std::optional<at::Tensor>& bias) const {
  const at::Tensor a = a_, b = b_;
  const double scale = options_.alpha / static_cast<double>(options_.rank);
  const auto change = at::linear(at::mul(at::linear(dropped(x, options_.dropout), a), scale), b);
  if (!magnitude_) return at::linear(x, weight, bias) + change;
  at::Tensor lengths;
  {
    const at::NoGradGuard no_grad;
    lengths = row_lengths(weight + at::mul(at::mm(b, a), scale)).to(x.scalar_type());
  }
  const auto y = scaled_columns((at::linear(x, weight) + change) / lengths, *magnitude_);
  return bias ? y + *bias : y;
}

}  // namespace lockstep::models
