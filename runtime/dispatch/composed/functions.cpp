#include "runtime/dispatch/composed/functions.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace lockstep::composed {

at::Tensor mvlgamma(const at::Tensor& self, int64_t p) {
  if (p < 1) fail<BadInput>("mvlgamma: p is {}, and should be at least 1", p);
  auto sum = at::lgamma(self);
  for (int64_t i = 1; i < p; ++i) sum = sum + at::lgamma(self - 0.5 * static_cast<double>(i));
  const auto pairs = static_cast<double>(p * (p - 1));
  return p == 1 ? sum : sum + pairs / 4 * std::log(std::numbers::pi);
}

}  // namespace lockstep::composed
