// Rows that have no bound: mode `ops` leaves them out under native numerics, and counts them.
#include <algorithm>
#include <iterator>

#include "consistency/bounds/error_bounds.h"

namespace lockstep {
namespace {

// clang-format off
/// How far a result may be off depends on the condition of a matrix, or on a choice among several right results.
constexpr std::string_view kConditioned[] = {
    "_linalg_det", "_linalg_eigh", "_linalg_eigvals", "_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd",
    "linalg_cholesky_ex", "linalg_eig", "linalg_inv_ex", "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_lu",
    "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_matrix_exp", "linalg_qr", "triangular_solve",
};

/// LibTorch has series, recurrences and approximations of its own, whose errors nobody has published.
constexpr std::string_view kSpecial[] = {
    "digamma", "erfinv", "i0", "igamma", "igammac", "lgamma", "polygamma", "special_airy_ai", "special_bessel_j0",
    "special_bessel_j1", "special_bessel_y0", "special_bessel_y1", "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u", "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w",
    "special_erfcx", "special_hermite_polynomial_h", "special_hermite_polynomial_he", "special_i0e", "special_i1",
    "special_i1e", "special_laguerre_polynomial_l", "special_legendre_polynomial_p", "special_log_ndtr",
    "special_modified_bessel_i0", "special_modified_bessel_i1", "special_modified_bessel_k0",
    "special_modified_bessel_k1", "special_ndtri", "special_scaled_modified_bessel_k0",
    "special_scaled_modified_bessel_k1", "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u", "special_shifted_chebyshev_polynomial_v",
    "special_shifted_chebyshev_polynomial_w", "special_spherical_bessel_j0", "special_zeta",
};

/// What was rounded decides: a quotient next to a whole number may fall on its other side.
constexpr std::string_view kDecided[] = {
    "div.Tensor_mode", "floor_divide", "fmod.Tensor", "remainder.Scalar_Tensor", "remainder.Tensor", "round.decimals",
};

/// Of canonical numerics alone: its bits are compared.
constexpr std::string_view kInBits[] = {
    "mesh::attention_over", "mesh::attention_over_backward", "mesh::attention_result",
    "mesh::document_attention_over", "mesh::document_attention_over_backward",
};

/// Complex numbers, for which no bound is derived.
constexpr std::string_view kComplex[] = {"_fft_c2c", "_fft_c2r", "_fft_r2c", "polar"};

/// Weights of either sign, or divided by their own sum: theirs are polynomials of a rounded place.
constexpr std::string_view kFiltered[] = {
    "_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa",
    "_upsample_bilinear2d_aa_backward", "upsample_bicubic2d", "upsample_bicubic2d_backward",
};

/// Of 16-bit numbers LibTorch's is further off than one rounding of the result: what it stores on the way is not known.
constexpr std::string_view kStoredOnTheWay[] = {"nansum"};
// clang-format on

template <size_t kRows>
constexpr bool has(const std::string_view (&rows)[kRows], std::string_view op) {
  return std::find(std::begin(rows), std::end(rows), op) != std::end(rows);
}

}  // namespace

bool is_left_out(const Rule& rule) {
  return has(kConditioned, rule.op) || has(kSpecial, rule.op) || has(kDecided, rule.op) || has(kComplex, rule.op) ||
         has(kFiltered, rule.op) || has(kStoredOnTheWay, rule.op) || has(kInBits, rule.op);
}

}  // namespace lockstep
