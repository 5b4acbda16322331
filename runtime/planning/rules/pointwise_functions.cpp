// Functions of an element, or of the elements at one place: what is not in pointwise.cpp, which has what models use.
// None passes a Partial through.
#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

constexpr Rule kPointwise{"", "pointwise", "...->..."};
/// LibTorch has no meta kernel.
constexpr Rule kUnshaped{"", "pointwise", "...->...", "-", Rule::kPlain, nullptr, pointwise_shapes};

/// LibTorch would not broadcast the value.
OpSharding with_one_value(const Call& call) {
  if (!call.sizes_of("value").empty())
    fail<BadInput>("{}: the value should have no dimensions, not {}", call.op, call.sizes_of("value").size());
  return parse_op_sharding("...->...", call.operand_sizes, call.result_sizes());
}

std::vector<Rule> make_rows() {
  std::vector<Rule> rows;
  add_rows(rows, {"", "pointwise", "...->...", "-", Rule::kPlain, with_one_value, pointwise_shapes},
           {"fill.Tensor", "masked_fill.Tensor"});
  // of one tensor
  add_rows(
      rows, kPointwise,
      {"acos",  "acosh",      "asin",        "asinh",      "atan",       "atanh",     "ceil",           "clamp_max",
       "cosh",  "digamma",    "elu",         "erfc",       "erfinv",     "exp2",      "expm1",          "floor",
       "frac",  "hardshrink", "hardsigmoid", "i0",         "isneginf",   "isposinf",  "leaky_relu",     "lgamma",
       "log10", "log2",       "mish",        "polygamma",  "pow.Scalar", "round",     "round.decimals", "signbit",
       "sinc",  "sinh",       "softplus",    "softshrink", "tan",        "threshold", "trunc"});
  add_rows(rows, kPointwise,
           {"special_airy_ai", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1",
            "special_entr", "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_log_ndtr",
            "special_modified_bessel_i0", "special_modified_bessel_i1", "special_modified_bessel_k0",
            "special_modified_bessel_k1", "special_ndtri", "special_scaled_modified_bessel_k0",
            "special_scaled_modified_bessel_k1", "special_spherical_bessel_j0"});
  add_rows(rows, kUnshaped,
           {"_conj_physical", "angle", "hardswish", "hardtanh", "logit", "nan_to_num", "remainder.Scalar_Tensor",
            "__lshift__.Scalar", "__rshift__.Scalar"});
  // of two or three
  add_rows(rows, kPointwise,
           {"atan2",
            "bitwise_left_shift.Tensor",
            "bitwise_right_shift.Tensor",
            "bitwise_xor.Tensor",
            "clamp.Tensor",
            "clamp_max.Tensor",
            "clamp_min.Tensor",
            "copysign.Tensor",
            "div.Tensor_mode",
            "fmax",
            "fmin",
            "fmod.Tensor",
            "gcd",
            "heaviside",
            "hypot",
            "igamma",
            "igammac",
            "lcm",
            "lerp.Tensor",
            "logaddexp",
            "logaddexp2",
            "nextafter",
            "remainder.Tensor",
            "special_xlog1py",
            "special_zeta",
            "xlogy.Tensor"});
  add_rows(rows, kPointwise,
           {"special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u", "special_chebyshev_polynomial_v",
            "special_chebyshev_polynomial_w", "special_hermite_polynomial_h", "special_hermite_polynomial_he",
            "special_laguerre_polynomial_l", "special_legendre_polynomial_p", "special_shifted_chebyshev_polynomial_t",
            "special_shifted_chebyshev_polynomial_u", "special_shifted_chebyshev_polynomial_v",
            "special_shifted_chebyshev_polynomial_w"});
  add_rows(rows, kUnshaped,
           {"__lshift__.Tensor", "__rshift__.Tensor", "complex", "floor_divide", "logical_xor", "polar", "rsub.Tensor",
            "_prelu_kernel"});
  add_rows(rows, {"", "pointwise", "...->...,...", "-", Rule::kPlain, nullptr, pointwise_shapes}, {"frexp.Tensor"});
  // derivatives
  add_rows(rows, kPointwise,
           {"elu_backward", "hardshrink_backward", "hardsigmoid_backward", "leaky_relu_backward", "logit_backward",
            "softplus_backward", "softshrink_backward"});
  add_rows(rows, kUnshaped, {"hardswish_backward", "hardtanh_backward", "_prelu_kernel_backward"});
  return rows;
}

}  // namespace

std::span<const Rule> pointwise_functions() {
  static const auto rows = make_rows();
  return rows;
}

}  // namespace lockstep::rules
