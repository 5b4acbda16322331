#include "runtime/dispatch/composed/activations.h"

#include <ATen/Functions.h>

#include <cmath>

#include "core/error.h"

namespace lockstep::composed {
namespace {

using at::Tensor;

void check(const Tensor& self, const Tensor& noise, double lower, double upper) {
  if (self.sizes() != noise.sizes())
    fail<BadInput>("rrelu_with_noise: noise has sizes {}, the input {}", c10::str(noise.sizes()),
                   c10::str(self.sizes()));
  if (!(lower <= upper && std::isfinite(lower) && std::isfinite(upper)))
    fail<BadInput>("rrelu_with_noise: slopes from {} to {}, expected a finite interval", lower, upper);
}

}  // namespace

Tensor rrelu_with_noise(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                        bool training, std::optional<at::Generator> generator) {
  const double least = lower.toDouble(), greatest = upper.toDouble();
  check(self, noise, least, greatest);
  if (!training) return at::leaky_relu(self, (least + greatest) / 2);
  const auto slopes = at::empty_like(self).uniform_(least, greatest, std::move(generator));
  noise.copy_(at::where(at::le(self, 0), slopes, at::ones_like(self)));
  return at::mul(self, noise);
}

Tensor& rrelu_with_noise_in_place(Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                                  bool training, std::optional<at::Generator> generator) {
  return self.copy_(composed::rrelu_with_noise(self, noise, lower, upper, training, std::move(generator)));
}

}  // namespace lockstep::composed
