// Ops that are linear in each of their operands. What they give on ones is the number of summands, element by element;
// coefficients of a sum that are no operands are 1, but for means (windows.cpp).
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "consistency/bounds/families.h"
#include "consistency/bounds/same_op.h"
#include "runtime/planning/plan.h"

namespace lockstep::bounds {
namespace {

/// Products with alpha and beta, and their sum.
constexpr double kFactors = 6;

/// n + `more` roundings, where n is the number of summands; sums of 16-bit numbers may be kept in 16 bits.
std::vector<at::Tensor> summed(const ExactCall& call, double more) {
  const auto counts = of_ones(call);
  auto allowed = of_magnitudes(call);
  for (size_t r = 0; r < allowed.size(); ++r) {
    const auto roundings = counts.at(r) + more;
    allowed[r] = lockstep::rounded(roundings + call.more_roundings, call.unit, allowed[r]) +
                 lockstep::rounded(roundings, call.stored_unit, allowed[r]);
  }
  return allowed;
}

/// One product and one sum for each summand.
std::vector<at::Tensor> sums(const ExactCall& call) { return summed(call, 1); }
std::vector<at::Tensor> scaled_sums(const ExactCall& call) { return summed(call, kFactors); }

/// Products of matrices are summed up in fp32; of 16-bit dtypes each matrix of a sum over a batch is stored.
at::Tensor sum_of_matrices(const ExactCall& call, double stored) {
  const auto all = of_magnitudes(call).at(0);
  return lockstep::rounded(of_ones(call).at(0) + kFactors + call.more_roundings, call.unit, all) +
         call.stored(stored, all);
}
at::Tensor added_batch(const ExactCall& call) { return sum_of_matrices(call, 4); }
at::Tensor added_sum(const ExactCall& call) {
  return sum_of_matrices(call, 2 * static_cast<double>(call.tensor("batch1").size(0)) + 4);
}

/// cuDNN may round factors to 11 bits first.
at::Tensor by_short_factors(const at::Tensor& magnitude) {
  if (!magnitude.is_cuda() || !at::globalContext().allowTF32CuDNN()) return at::zeros_like(magnitude);
  return lockstep::rounded(2, 0x1p-11, magnitude);
}

/// Not of Winograd's transforms, whose roundings count for more: LibTorch's kernels for CPUs add up products.
at::Tensor convolved(const ExactCall& call) {
  const auto all = of_magnitudes(call).at(0);
  return lockstep::rounded(of_ones(call).at(0) + 2 + call.more_roundings, call.unit, all) + call.stored(3, all) +
         by_short_factors(all);
}
std::vector<at::Tensor> convolution_gradients(const ExactCall& call) {
  auto allowed = summed(call, 2);
  const auto all = of_magnitudes(call);
  for (size_t r = 0; r < allowed.size(); ++r) allowed[r] = allowed[r] + by_short_factors(all[r]);
  return allowed;
}

/// Sums along a dimension, running or not, are kept in fp32 at least.
at::Tensor sum_in_single(const ExactCall& call) {
  const auto sums = of_magnitudes(call).at(0);
  return lockstep::rounded(of_ones(call).at(0) + 1 + call.more_roundings, call.unit, sums);
}

at::Tensor rolled(const at::Tensor& vectors, int64_t by, int64_t dim) {
  return vectors.roll(at::IntArrayRef{by}, at::IntArrayRef{dim});
}

/// Differences of two products, of the next element but one with the next.
at::Tensor crossed(const ExactCall& call) {
  const auto a = call.magnitude("self"), b = call.magnitude("other");
  const auto dim = call.argument("dim").toInt();
  const auto both = rolled(a, -1, dim) * rolled(b, -2, dim) + rolled(a, -2, dim) * rolled(b, -1, dim);
  return call.rounded_as_stored(4, both);
}

constexpr Row sums_of(std::string_view op) { return {op, {ErrorBound::Kind::kRounded, sums}}; }
constexpr Row scaled_sums_of(std::string_view op) { return {op, {ErrorBound::Kind::kRounded, scaled_sums}}; }

constexpr Row kRows[] = {
    sums_of("_index_put_impl"),
    sums_of("_upsample_nearest_exact1d_backward"),
    sums_of("_upsample_nearest_exact2d_backward"),
    sums_of("_upsample_nearest_exact3d_backward"),
    sums_of("adaptive_max_pool2d_backward"),
    sums_of("adaptive_max_pool3d_backward"),
    row<added_sum>("addbmm"),
    scaled_sums_of("addmv"),
    row<added_batch>("baddbmm"),
    row<convolved>("convolution"),
    {"convolution_backward", {ErrorBound::Kind::kRounded, convolution_gradients}},
    row<sum_in_single>("cumsum"),
    sums_of("dot"),
    scaled_sums_of("index_add"),
    sums_of("index_put"),
    row<crossed>("linalg_cross"),
    sums_of("max_pool2d_with_indices_backward"),
    sums_of("mv"),
    sums_of("put"),
    sums_of("reflection_pad1d_backward"),
    sums_of("reflection_pad2d_backward"),
    sums_of("reflection_pad3d_backward"),
    sums_of("replication_pad1d_backward"),
    sums_of("replication_pad2d_backward"),
    sums_of("replication_pad3d_backward"),
    sums_of("scatter_add"),
    sums_of("trace"),
    sums_of("unfold_backward"),
    sums_of("upsample_nearest1d_backward"),
    sums_of("upsample_nearest2d_backward"),
    sums_of("upsample_nearest3d_backward"),
    sums_of("vdot"),
};

}  // namespace

std::span<const Row> multilinear() { return kRows; }

}  // namespace lockstep::bounds
