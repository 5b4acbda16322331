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

/// How far exp(exponent) may be from 0 where own kernels make it 0: below e^-86 (normal_exp of
/// core/elementary/elementary.h), and in attention below 2^-125. Four of the smallest normal numbers there, 0
/// elsewhere.
at::Tensor cut_exponential(const at::Tensor& exponent);

/// Rows outside of views and factories whose results are one device's bits, but for those of error_bounds.cpp.
std::span<const std::string_view> exact_rows();

std::span<const Row> activations();
std::span<const Row> attention();
std::span<const Row> elementwise();
std::span<const Row> experts();
std::span<const Row> function_pairs();
std::span<const Row> functions();
std::span<const Row> losses();
std::span<const Row> multilinear();
std::span<const Row> norms();
std::span<const Row> optimizer();
std::span<const Row> products();
std::span<const Row> softmax();
std::span<const Row> statistics();
std::span<const Row> sums();
std::span<const Row> windows();

}  // namespace lockstep::bounds
