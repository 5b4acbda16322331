#pragma once
#include "consistency/bounds/error_bounds.h"

/// The bounds of each family of ops, one function per file of this folder.
namespace lockstep::bounds {

struct Row {
  std::string_view op;  ///< as in the op table
  ErrorBound bound;
};

/// Of rows with one result.
template <at::Tensor (*kAllowed)(const ExactCall&), at::Tensor (*kRoughly)(const ExactCall&) = nullptr>
constexpr Row row(std::string_view op) {
  return {op,
          {ErrorBound::Kind::kRounded, [](const ExactCall& call) { return std::vector{kAllowed(call)}; }, kRoughly}};
}

/// So far is an exponential off that own kernels make 0: all below e^-86 (normal_exp of core/elementary/elementary.h),
/// and in attention below 2^-125; four of the smallest normal numbers.
inline constexpr double kCutExponential = 0x1p-124;

std::span<const Row> attention();
std::span<const Row> elementwise();
std::span<const Row> functions();
std::span<const Row> norms();
std::span<const Row> optimizer();
std::span<const Row> softmax();
std::span<const Row> sums();

}  // namespace lockstep::bounds
