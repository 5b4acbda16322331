#pragma once
#include "core/elementary/elementary_erf.h"

/// The standard normal distribution beyond y >= 0; see core/elementary/elementary.h for errors. Free of branches.
namespace lockstep::elementary {

/// bell = e^(-y^2 / 2), the density but for 1 / sqrt(2 pi); beyond = P(X > y). Both are 0 from kEnd on.
template <class T>
struct NormalTail {
  static constexpr T kEnd = sizeof(T) == sizeof(float) ? T(13) : T(37);
  T bell, beyond;
};

/// bell = 2^u = 2^(u - n) 2^n for u = -y^2 / ln 4, n = rint(u); beyond / bell is a quotient of polynomials in y.
LOCKSTEP_PORTABLE NormalTail<float> normal_tail(float y) {
  constexpr float kRate = -0x1.715476p-1f;
  const float square = y * y;
  const float shifted = portable::fma(square, kRate, detail::kRoundSingle);
  const float r = portable::fma(square, kRate, -(shifted - detail::kRoundSingle));
  const float bell = exp2_near_zero(r) * detail::power_of_two(shifted);
  const float upper = detail::polynomial(y, 0x1p-1f, 0x1.51a5p-2f, 0x1.a159eap-4f, 0x1.abe778p-7f);
  const float lower = detail::polynomial(y, 0x1p+0f, 0x1.75149cp+0f, 0x1.bbb21cp-1f, 0x1.04e30ap-2f, 0x1.0c5a54p-5f);
  const float beyond = bell * upper / lower;
  return {y >= NormalTail<float>::kEnd ? 0.0f : bell, y >= NormalTail<float>::kEnd ? 0.0f : beyond};
}

LOCKSTEP_PORTABLE NormalTail<double> normal_tail(double y) {
  const double bell = normal_exp(y * y * -0.5), beyond = (1.0 - erf(y * 0x1.6a09e667f3bcdp-1)) * 0.5;
  return {y >= NormalTail<double>::kEnd ? 0.0 : bell, y >= NormalTail<double>::kEnd ? 0.0 : beyond};
}

}  // namespace lockstep::elementary
