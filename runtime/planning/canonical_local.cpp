#include "runtime/planning/canonical_local.h"

#include "core/error.h"

namespace lockstep {

const SumTree& batch_tree(const LocalCall& call) {
  LOCKSTEP_CHECK(call.plan.batch, "the row of {} has no kSamples", call.op.operator_name().name);
  return *call.plan.batch;
}

kernels::Summands summands_here(const LocalCall& call, size_t slot, int dim, const SumTree& tree) {
  const auto range = call.plan.wanted[slot]->cut(call.index, dim);
  return {tree, range.start, range.length};
}

kernels::ContractedRange contracted_here(const LocalCall& call, size_t slot, int64_t dim, int64_t unit) {
  if (!call.plan.results[0]->layout.ordered_sum()) return {};
  const int64_t start = call.plan.wanted[slot]->cut(call.index, static_cast<int>(dim)).start;
  return {start / unit, (global_size(call, slot, dim) + unit - 1) / unit};
}

int64_t global_size(const LocalCall& call, size_t slot, int64_t dim) {
  return call.plan.wanted[slot]->sizes[static_cast<size_t>(dim)];
}

at::Tensor finished_sum(const LocalCall& call, const at::Tensor& nodes, c10::ScalarType dtype) {
  return call.plan.results[0]->layout.ordered_sum() ? nodes : kernels::only_node(nodes).to(dtype);
}

}  // namespace lockstep
