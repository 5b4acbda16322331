// Ops over whole rows (the last dimension, or one named): softmax, norms, cross-entropy over a sharded vocabulary.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/canonical_calls.h"

namespace lockstep::rules {
namespace {

/// All dimensions are cut alike, but `dim` is whole.
OpSharding all_but_dim(const Call& call) {
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

/// Values whose leading dimensions are those of operand 0 without the last.
std::vector<ResultShape> per_row(const Call& call) {
  auto sizes = call.operand_sizes[0];
  sizes.pop_back();
  return {{sizes, {}, call.operand_dtypes[0]}};
}

std::vector<ResultShape> rms_norm_shapes(const Call& call) {
  auto row = per_row(call)[0];
  if (row.dtype == c10::kBFloat16 || row.dtype == c10::kHalf) row.dtype = c10::kFloat;
  return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}, row};
}

std::vector<ResultShape> rms_norm_backward_shapes(const Call& call) {
  return {{call.operand_sizes[1], {}, call.operand_dtypes[1]}, {call.operand_sizes[3], {}, call.operand_dtypes[3]}};
}

/// The sum over everything between the batch and the last dimension, which can be cut where it is one dimension.
OpSharding norm_gradient_form(const Call& call) {
  const int64_t dims = call.dims(1);
  OpShardingDims x;
  for (int d = 0; d + 1 < dims; ++d) x.push_back(d == 0 || dims == 3 ? OpShardingDim{d} : OpShardingDim{});
  OpSharding sharding;
  sharding.operands.push_back(x);
  sharding.operands[0].push_back({});
  sharding.operands.push_back(sharding.operands[0]);
  sharding.operands.push_back(x);
  sharding.results = {{{0}, {}}};
  return sharding;
}

std::vector<ResultShape> norm_gradient_shape(const Call& call) {
  return {{{call.operand_sizes[1][0], call.operand_sizes[1].back()}, {}, call.operand_dtypes[1]}};
}

std::vector<ResultShape> like_second(const Call& call) { return {{call.operand_sizes[1], {}, call.operand_dtypes[1]}}; }

/// Target minus the first class of this rank's shard, -1 where the target lies elsewhere (or is ignored).
at::Tensor local_target(const at::Tensor& target, const Range& classes) {
  const auto local = target - classes.start;
  return at::where((local >= 0).logical_and_(local < classes.length), local, at::full_like(local, -1));
}

}  // namespace

void local_pick(const LocalCall& call, torch::jit::Stack& stack) {
  const auto& spec = *call.plan.wanted[0];
  const int last = static_cast<int>(spec.dim_count()) - 1;
  call.set_argument(stack, "target", local_target(stack[1].toTensor(), spec.cut(call.index, last)));
  call.op.callBoxed(stack);
}

namespace {

void local_cross_entropy_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const auto& spec = *call.plan.wanted[1];
  const int last = static_cast<int>(spec.dim_count()) - 1;
  const auto target = call.argument(stack, "target").toTensor();
  call.set_argument(stack, "target", local_target(target, spec.cut(call.index, last)));
  call.op.callBoxed(stack);
}

/// The gate's dimension, the last but one, disappears.
std::vector<ResultShape> gated_shape(const Call& call) {
  auto sizes = call.operand_sizes[0];
  if (sizes[sizes.size() - 2] != 2)
    fail<BadInput>("{}: the last dimension but one holds a gate and what it gates, so it has 2 entries, not {}",
                   call.op, sizes[sizes.size() - 2]);
  sizes.erase(sizes.end() - 2);
  return {{sizes, {}, call.operand_dtypes[0]}};
}

constexpr Rule kRows[] = {
    {"_log_softmax", "row", "all but dim", "-", Rule::kPlain, all_but_dim},
    {"_log_softmax_backward_data", "row", "all but dim", "e-", Rule::kPlain, all_but_dim},
    {"_softmax", "row", "all but dim", "-", Rule::kPlain, all_but_dim},
    {"_softmax_backward_data", "row", "all but dim", "e-", Rule::kPlain, all_but_dim},
    {"mesh::cross_entropy_backward", "row", "...,...v,...,...->...v", "e---", Rule::kPlain, nullptr, like_second,
     local_cross_entropy_backward},
    {"mesh::exponential_sum", "row", "...v,...->...", "-", Rule::kPlain, nullptr, per_row},
    {"mesh::pick_class", "row", "...v,...->...", "e-", Rule::kPlain, nullptr, per_row, local_pick},
    {"mesh::rms_norm", "row", "...D,D->...D,...", "-", Rule::kNoReduce, nullptr, rms_norm_shapes},
    {"mesh::rms_norm_backward", "row", "...D,...D,...,D->...D,D", "e---", Rule::kPlain, nullptr,
     rms_norm_backward_shapes},
    {"mesh::rms_norm_input_gradient", "row", "...D,...D,...,D->...D", "e---", Rule::kPlain, nullptr, like_second},
    {"mesh::rms_norm_weight_gradient", "row", "b...D,b...D,b...->bD", "e--", Rule::kPlain, norm_gradient_form,
     norm_gradient_shape},
    {"mesh::swiglu", "row", "...Tw->...w", "-", Rule::kNoReduce, nullptr, gated_shape},
    {"mesh::swiglu_backward", "row", "...w,...Tw->...Tw", "e-", Rule::kPlain, nullptr, like_second},
};

}  // namespace

std::span<const Rule> rows() { return kRows; }

}  // namespace lockstep::rules
