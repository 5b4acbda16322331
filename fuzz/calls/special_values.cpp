#include "fuzz/calls/special_values.h"

#include <ATen/Functions.h>
#include <rapidcheck.h>

#include <limits>

#include "fuzz/cases/drawn.h"

namespace lockstep::testing {
namespace {

enum class Special { kNone, kTies, kZeros, kInfinities };

/// Every `every`-th of them, in turn.
at::Tensor with_values(const at::Tensor& tensor, const std::vector<double>& values, int64_t every) {
  auto flat = tensor.clone(at::MemoryFormat::Contiguous).view({-1});
  for (int64_t i = 0, next = 0; i < flat.numel(); i += every, ++next)
    flat[i].fill_(values[static_cast<size_t>(next) % values.size()]);
  return flat.view(tensor.sizes());
}

/// The first few elements over and over.
at::Tensor with_ties(const at::Tensor& tensor, int64_t different) {
  const auto places = at::arange(tensor.numel(), at::kLong).remainder(different);
  return tensor.reshape({-1}).index_select(0, places).reshape(tensor.sizes());
}

at::Tensor with_special(const at::Tensor& tensor, Special special, int64_t every) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (special) {
    case Special::kTies:
      return with_ties(tensor, every);
    case Special::kZeros:
      return with_values(tensor, {-0.0, 0.0, -0.0}, every);
    case Special::kInfinities:
      return with_values(tensor, {kInfinity, std::nan(""), -kInfinity, -0.0}, 5 * every);
    default:
      return tensor;
  }
}

}  // namespace

void plant_special_values(OpCall& call) {
  const auto special = drawn(*rc::gen::weightedElement<int>({{5, 0}, {1, 1}, {1, 2}, {1, 3}}));
  if (special == 0) return;
  const auto every = *rc::gen::inRange<int64_t>(1, 4);
  auto tensors = tensors_of(call);
  for (auto& tensor : tensors)
    if (tensor.is_floating_point() && tensor.numel() > 0)
      tensor = with_special(tensor, static_cast<Special>(special), every);
  call.arguments = with_tensors(call, tensors);
}

}  // namespace lockstep::testing
