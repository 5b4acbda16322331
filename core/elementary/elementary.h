#pragma once
#include "core/elementary/elementary_double.h"
#include "core/elementary/elementary_erf.h"
#include "core/elementary/elementary_normal.h"
#include "core/elementary/elementary_single.h"
#include "core/elementary/elementary_trigonometric.h"

/// Elementary functions from IEEE operations alone: add, multiply, divide, fma, integer operations.
///
/// libm and vector libraries differ in the last bit between versions, instruction sets and devices. These functions
/// give the same bits on every CPU and GPU, one by one or inside a vectorised loop. Everything that reaches a tensor
/// uses them.
///
/// | function                          | float error (ulp) | double error (ulp) | how tested                         |
/// |-----------------------------------|-------------------|--------------------|------------------------------------|
/// | exp                               | < 1.00            | < 1.00             | float: every value; double sampled |
/// | normal_exp, where it is not 0     | < 1.00            | < 1.00             | equals exp                         |
/// | exp2                              | < 0.90            | < 0.90             | float: every value; double sampled |
/// | log                               | < 0.80            | < 0.90             | float: every value; double sampled |
/// | tanh                              | < 1.50            | < 1.50             | float: every value; double sampled |
/// | erf                               | < 1.30            | < 1.30             | float: every value; double sampled |
/// | sin, cos                          | < 0.501           | < 0.90             | sampled over all exponents         |
/// | sin_cos_of_turns                  | < 2.50            | < 2.50             | sampled                            |
///
/// normal_tail: the absolute error is below 1.2e-7 (single) and 2e-16 (double precision); the relative one of single
/// precision below 4e-6 up to y = 6.
///
/// An ulp is the spacing of floating-point numbers at the exact result (at subnormal results: the least subnormal).
/// Special values as in C's annex F: exp(-inf) = 0, log(0) = -inf, log(x < 0) = NaN, sin(inf) = NaN, tanh(-0) = -0; NaN
/// gives NaN, its payload unspecified. Requires the environment of core/elementary/floating_environment.h.
