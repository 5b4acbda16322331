#pragma once
#include "core/elementary/elementary.h"
#include "core/elementary/portable.h"

/// The normal distribution function and its inverse, for truncated normals. Coefficients: rng/normal_quantile_fit.py.
namespace lockstep::rng {

/// P(Z <= z) for a standard normal Z and z <= 0: near 0 the series 1/2 + phi(z) (z + z^3/3 + z^5/(3 5) + ...), below -3
/// the continued fraction phi(z) / (x + 1/(x + 2/(x + 3/(x + ...)))), x = -z. Relative error below 1e-12.
double normal_lower_tail(double z);

/// z with P(Z <= z) = p for 2^-108 <= p <= 1/2. Relative error below 1e-12 for p > 3e-4, 1e-11 below.
LOCKSTEP_PORTABLE double normal_quantile_of_lower_half(double p) {
  if (p >= 0.15) {  // t times a polynomial in t^2, t = p - 1/2
    const double t = p - 0.5;
    return t * elementary::detail::polynomial(t * t, 0x1.40d931ff6270dp+1, 0x1.4ffddeaa1a07cp+1, 0x1.717130904fe95p+2,
                                              0x1.f55d05607c6b2p+3, 0x1.784a91c00745dp+5, 0x1.2b89b7869d185p+7,
                                              0x1.f42b291f331a6p+8, 0x1.7b5982c1ebcaep+10, 0x1.6225127180f7dp+13,
                                              -0x1.9b412f0c4c338p+16, 0x1.0ec22854828d5p+21, -0x1.9610c40ba4ff4p+24,
                                              0x1.d6cb27064f54fp+27, -0x1.7c92e35e51caep+30, 0x1.a50240084c011p+32,
                                              -0x1.1aacb13a754efp+34, 0x1.6b2f4376eccecp+34);
  }
  const double s = portable::sqrt(-2.0 * elementary::log_normal(p));
  if (s < 4.0)
    return -elementary::detail::polynomial(
        s, -0x1.5a40e989ab1ep+1, 0x1.1cb1308c500edp+2, -0x1.159deea036bdap+2, 0x1.1816b7cf9b7dp+2,
        -0x1.b824c252aa329p+1, 0x1.0e4b09f20a2efp+1, -0x1.05644127a1109p+0, 0x1.8feea09d3792ep-2, -0x1.e425e8ebf6b4ap-4,
        0x1.cd5e5e01200e8p-6, -0x1.5615fa641a066p-8, 0x1.82ab7831cb7dp-11, -0x1.41e9266014109p-14,
        0x1.743185ea14c4ep-18, -0x1.0aed11c4321bep-22, 0x1.65c4158aef5acp-28);
  const double inverse = 1.0 / s;
  return elementary::detail::polynomial(inverse, 0x1.13288f29cb80fp-7, 0x1.4f6d14b33cf84p+2, -0x1.bb3a320417d56p+5,
                                        0x1.df3cb7cacfa07p+9, -0x1.db349fd3cb38ep+13, 0x1.862c7285c9f98p+17,
                                        -0x1.046ce4d4e69acp+21, 0x1.19e3159e5afcfp+24, -0x1.eeaaa4d87fbf9p+26,
                                        0x1.5f3792430e1f7p+29, -0x1.91aaa2150fa95p+31, 0x1.6eb05bd9e81f2p+33,
                                        -0x1.075dc91152b2ep+35, 0x1.22eded47a319dp+36, -0x1.dcca20fec66b2p+36,
                                        0x1.10dc1b715ae56p+37, -0x1.853e6b20cb529p+36, 0x1.046a8f7abb476p+35) -
         s;
}

/// z with P(Z <= z) = p, 0 < p < 1.
LOCKSTEP_PORTABLE double normal_quantile(double p) {
  return p <= 0.5 ? normal_quantile_of_lower_half(p) : -normal_quantile_of_lower_half(1.0 - p);
}

}  // namespace lockstep::rng
