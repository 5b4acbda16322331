// Ops over whole rows of LibTorch's: softmax. Norms and cross-entropy are ops of our own (runtime/own_ops).
#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

/// LibTorch's kernels take a gradient of other sizes for what it is not, and read out of bounds.
void check_equal_sizes(const Call& call) {
  for (const auto& sizes : call.operand_sizes)
    if (sizes != call.operand_sizes[0])
      fail<BadInput>("{}: the operands' sizes should be equal, not {} and {}", call.op,
                     c10::str(c10::IntArrayRef(call.operand_sizes[0])), c10::str(c10::IntArrayRef(sizes)));
}

/// All dimensions are cut alike, but `dim` is whole.
OpSharding all_but_dim(const Call& call) {
  check_equal_sizes(call);
  const auto count = call.dims(0);
  OpShardingDims dims;
  for (int d = 0; d < count; ++d) dims.push_back({d});
  if (count > 0) dims[static_cast<size_t>(call.dimension("dim", count))] = {};
  OpSharding sharding;
  sharding.operands.assign(call.slots.size(), dims);
  sharding.results.assign(call.results.size(), dims);
  sharding.can_reduce = false;
  return sharding;
}

constexpr Rule kRows[] = {
    {"_log_softmax", "row", "all but dim", "-", Rule::kPlain, all_but_dim},
    {"_log_softmax_backward_data", "row", "all but dim", "e-", Rule::kPlain, all_but_dim},
    {"_softmax", "row", "all but dim", "-", Rule::kPlain, all_but_dim},
    {"_softmax_backward_data", "row", "all but dim", "e-", Rule::kPlain, all_but_dim},
};

}  // namespace

std::span<const Rule> rows() { return kRows; }

}  // namespace lockstep::rules
