// Means over windows, and interpolation between neighbours.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "consistency/bounds/families.h"
#include "consistency/bounds/same_op.h"

namespace lockstep::bounds {
namespace {

/// Elements of a window; one size stands for all dimensions.
double window(const ExactCall& call, int64_t dims) {
  const auto sizes = call.argument("kernel_size").toIntVector();
  if (sizes.size() == 1) return std::pow(static_cast<double>(sizes[0]), static_cast<double>(dims));
  return static_cast<double>(c10::multiply_integers(sizes));
}

/// A sum in fp32, and a quotient.
template <int64_t kDims>
at::Tensor mean(const ExactCall& call) {
  const auto means = of_magnitudes(call).at(0);
  return call.rounded(window(call, kDims) + 3, means) + call.stored(2, means);
}

/// An element lies in at most as many windows as a window has elements. 16-bit gradients are added up in 16 bits.
template <int64_t kDims>
at::Tensor mean_gradient(const ExactCall& call) {
  return call.rounded_as_stored(window(call, kDims) + 3, of_magnitudes(call).at(0));
}

/// How many of `from` elements one of `to` may come from, in each of the last dimensions.
double adaptive_window(const at::Tensor& from, const at::Tensor& to, int64_t dims) {
  double elements = 1;
  for (int64_t d = -dims; d < 0; ++d)
    elements *= std::ceil(static_cast<double>(from.size(d)) / std::max<double>(1, static_cast<double>(to.size(d)))) + 1;
  return elements;
}

template <int64_t kDims>
at::Tensor adaptive_mean(const ExactCall& call) {
  const auto means = of_magnitudes(call).at(0);
  return call.rounded(adaptive_window(call.tensor("self"), means, kDims) + 3, means) + call.stored(3, means);
}
template <int64_t kDims>
at::Tensor adaptive_mean_gradient(const ExactCall& call) {
  const auto gradient = of_magnitudes(call).at(0);
  return call.rounded_as_stored(adaptive_window(call.tensor("grad_output"), gradient, kDims) + 4, gradient);
}

/// Where an element comes from has 4 roundings of a number below the size, which each of its neighbours' weights has,
/// too (a weight falls by 1 over one element); then there are products and sums of 2^d neighbours.
double of_weights(const at::Tensor& sizes_of, int64_t dims) {
  double roundings = 0;
  for (int64_t d = -dims; d < 0; ++d) roundings += 2 * 4 * (static_cast<double>(sizes_of.size(d)) + 1) + 6;
  return roundings;
}

std::vector<int64_t> last(int64_t dims) {
  std::vector<int64_t> all;
  for (int64_t d = -dims; d < 0; ++d) all.push_back(d);
  return all;
}

/// A neighbour on the other side of a rounded place has a weight near 0, or is as far from it: all of the plane counts.
template <int64_t kDims>
at::Tensor interpolated(const ExactCall& call) {
  const auto self = call.magnitude("self");
  return call.rounded(of_weights(self, kDims), self.amax(last(kDims), /*keepdim=*/true)) +
         call.stored(2, self.amax(last(kDims), /*keepdim=*/true));
}

/// The same of a sum over all that an element goes to. 16-bit gradients are added up in 16 bits.
template <int64_t kDims>
at::Tensor interpolated_gradient(const ExactCall& call) {
  const auto gradient = call.magnitude("grad_output"), like = call.exact[0];
  const auto sum = gradient.sum(last(kDims), /*keepdim=*/true);
  const double summands =
      static_cast<double>(gradient.numel()) / static_cast<double>(std::max<int64_t>(1, sum.numel()));
  return call.rounded(of_weights(like, kDims) + summands, sum) + call.stored(summands + 2, sum);
}

constexpr Row kRows[] = {
    row<adaptive_mean<2>>("_adaptive_avg_pool2d"),
    row<adaptive_mean_gradient<2>>("_adaptive_avg_pool2d_backward"),
    row<adaptive_mean<3>>("_adaptive_avg_pool3d"),
    row<adaptive_mean_gradient<3>>("_adaptive_avg_pool3d_backward"),
    row<mean<2>>("avg_pool2d"),
    row<mean_gradient<2>>("avg_pool2d_backward"),
    row<mean<3>>("avg_pool3d"),
    row<mean_gradient<3>>("avg_pool3d_backward"),
    row<interpolated<2>>("upsample_bilinear2d"),
    row<interpolated_gradient<2>>("upsample_bilinear2d_backward"),
    row<interpolated<1>>("upsample_linear1d"),
    row<interpolated_gradient<1>>("upsample_linear1d_backward"),
    row<interpolated<3>>("upsample_trilinear3d"),
    row<interpolated_gradient<3>>("upsample_trilinear3d_backward"),
};

}  // namespace

std::span<const Row> windows() { return kRows; }

}  // namespace lockstep::bounds
