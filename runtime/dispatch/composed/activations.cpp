#include "runtime/dispatch/composed/activations.h"

#include <ATen/Functions.h>

#include "core/error.h"

namespace lockstep::composed {
namespace {

using at::Tensor;

void check_sizes(const Tensor& self, const Tensor& noise) {
  if (self.sizes() != noise.sizes())
    fail<BadInput>("rrelu_with_noise: noise has sizes {}, the input {}", c10::str(noise.sizes()),
                   c10::str(self.sizes()));
}

}  // namespace

std::tuple<Tensor, Tensor> rrelu_with_noise_functional(const Tensor& self, const Tensor& noise, const at::Scalar& lower,
                                                       const at::Scalar& upper, bool training,
                                                       std::optional<at::Generator> generator) {
  check_sizes(self, noise);
  const double least = lower.toDouble(), greatest = upper.toDouble();
  if (!training) return {at::leaky_relu(self, (least + greatest) / 2), noise.clone()};
  const auto slopes = at::empty_like(self).uniform_(least, greatest, std::move(generator));
  const auto drawn = at::where(at::le(self, 0), slopes, at::ones_like(self));
  return {at::mul(self, drawn), drawn};
}

Tensor rrelu_with_noise(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                        bool training, std::optional<at::Generator> generator) {
  auto [result, drawn] =
      composed::rrelu_with_noise_functional(self, noise, lower, upper, training, std::move(generator));
  if (training) noise.copy_(drawn);
  return result;
}

Tensor& rrelu_with_noise_in_place(Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                                  bool training, std::optional<at::Generator> generator) {
  return self.copy_(composed::rrelu_with_noise(self, noise, lower, upper, training, std::move(generator)));
}

}  // namespace lockstep::composed
