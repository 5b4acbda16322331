#include "runtime/tensor/reduce.h"

#include <ATen/Functions.h>

#include <bit>

#include "core/error.h"

namespace lockstep {
namespace {

/// LibTorch multiplies one summand by a complex 1, which makes a NaN of an infinity's other part.
at::Tensor complex_sum(const at::Tensor& left, const at::Tensor& right) {
  const auto parts = [](const at::Tensor& x) { return at::view_as_real(at::resolve_conj(x)); };
  return at::view_as_complex(at::add(parts(left), parts(right)));
}

at::Tensor combine(const at::Tensor& left, const at::Tensor& right, Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAvg:
      if (left.is_complex()) return complex_sum(left, right);
      return left.scalar_type() == c10::kBool ? at::logical_or(left, right) : at::add(left, right);
    case Reduction::kMax:
      return at::maximum(left, right);
    case Reduction::kMin:
      return at::minimum(left, right);
    case Reduction::kProd:
      return at::mul(left, right);
  }
  LOCKSTEP_CHECK(false, "unknown reduction");
}

at::Tensor reduce_tree(std::span<const at::Tensor> nodes, Reduction reduction) {
  if (nodes.size() == 1) return nodes[0];
  const size_t left = std::bit_floor(nodes.size() - 1);
  return combine(reduce_tree(nodes.first(left), reduction), reduce_tree(nodes.subspan(left), reduction), reduction);
}

}  // namespace

at::Tensor reduce(std::span<const at::Tensor> nodes, Reduction reduction) {
  LOCKSTEP_CHECK(!nodes.empty());
  auto result = nodes.size() == 1 ? nodes[0].clone() : reduce_tree(nodes, reduction);
  if (reduction != Reduction::kAvg) return result;
  if (!result.is_floating_point() && !result.is_complex())
    fail<BadInput>("an average needs a floating dtype, got {}", c10::toString(result.scalar_type()));
  return result.div_(at::full({}, static_cast<double>(nodes.size()), result.options()));  // not by the reciprocal
}

void fill_with_neutral(at::Tensor& shard, Reduction reduction) {
  if (reduction == Reduction::kSum) shard.zero_();
  if (reduction == Reduction::kProd) shard.fill_(1);
}

}  // namespace lockstep
