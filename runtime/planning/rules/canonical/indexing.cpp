// Writes to places that are named by indices: in the order of the indices, whoever holds what has none.
#include <ATen/Functions.h>
#include <ATen/OpMathType.h>

#include "runtime/kernels/tensors/ordered_scatter.h"
#include "runtime/planning/rules/canonical/canonical_forms.h"
#include "runtime/planning/rules/canonical/leave_result.h"

namespace lockstep::rules {
namespace {

using at::Tensor;
using kernels::Write;

void local_scatter_add(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self");
  leave_result(call, stack, self,
               kernels::ordered_scatter(self, call.argument(stack, "dim").toInt(), call.tensor(stack, "index"),
                                        call.tensor(stack, "src"), Write::kAdd));
}

/// As scatter_add, whose index is the same all over a slice.
void local_index_add(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self"), source = call.tensor(stack, "source");
  const auto dim = call.argument(stack, "dim").toInt();
  const auto alpha = call.argument(stack, "alpha").toScalar();
  auto index = call.tensor(stack, "index").to(c10::kLong);
  if (self.dim() > 0) {
    std::vector<int64_t> sizes(static_cast<size_t>(self.dim()), 1);
    sizes[static_cast<size_t>(dim < 0 ? dim + self.dim() : dim)] = index.numel();
    index = index.reshape(sizes).expand(source.sizes());
  }
  const auto wide = at::toOpMathType(source.scalar_type());
  const auto scaled = alpha.equal(1) ? source : at::mul(source.to(wide), alpha);
  leave_result(call, stack, self, kernels::ordered_scatter(self, dim, index, scaled, Write::kAdd));
}

/// Where the elements lie that these indices name, in a tensor of these sizes without gaps.
Tensor places(const Tensor& self, const c10::IValue& indices) {
  c10::List<std::optional<Tensor>> list;
  for (const auto& index : indices.toListRef())
    list.push_back(index.isNone() ? std::optional<Tensor>() : std::optional<Tensor>(index.toTensor()));
  return at::index(at::arange(self.numel(), at::kLong).reshape(self.sizes()), list);
}

void local_index_put(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self");
  const auto where = places(self, call.argument(stack, "indices"));
  const auto values = call.tensor(stack, "values").expand(where.sizes()).reshape({-1});
  const auto write = call.argument(stack, "accumulate").toBool() ? Write::kAdd : Write::kReplace;
  const auto result = kernels::ordered_scatter(self.reshape({-1}), 0, where.reshape({-1}), values, write);
  leave_result(call, stack, self, result.reshape(self.sizes()));
}

void local_put(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self");
  const auto index = call.tensor(stack, "index").reshape({-1});
  const auto where = at::where(at::lt(index, 0), at::add(index, self.numel()), index);
  const auto write = call.argument(stack, "accumulate").toBool() ? Write::kAdd : Write::kReplace;
  const auto result =
      kernels::ordered_scatter(self.reshape({-1}), 0, where, call.tensor(stack, "source").reshape({-1}), write);
  leave_result(call, stack, self, result.reshape(self.sizes()));
}

constexpr CanonicalRule kForms[] = {
    {"_index_put_impl", local_index_put}, {"index_add", local_index_add},
    {"index_put", local_index_put},       {"put", local_put},
    {"scatter_add", local_scatter_add},
};

}  // namespace

std::span<const CanonicalRule> canonical_indexing() { return kForms; }

}  // namespace lockstep::rules
