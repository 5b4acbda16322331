// Ops that make tensors of given sizes, or like a given one. The result lies as the operand where sizes agree.
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

OpSharding like(const Call& call) {
  OpShardingDims dims;
  for (int d = 0; d < call.dims(0); ++d) dims.push_back({d});
  OpSharding sharding;
  sharding.operands = {dims};
  const bool same = call.results[0].sizes == call.operand_sizes[0];
  sharding.results = {same ? dims : OpShardingDims(call.results[0].sizes.size(), OpShardingDim{})};
  sharding.can_reduce = false;
  return sharding;
}

/// Of a Partial the shards have other sizes, and perhaps another dtype, than the result's.
void forget_partial(const LocalCall& call, torch::jit::Stack& stack) {
  const auto& result = *call.plan.results[0];
  if (!call.plan.given[0]->any_partial) return;
  const auto options = call.tensor(stack, "self").options();
  const auto dtype = stored(result.layout.mesh().all().domain(), call.plan.given[0]->dtype);
  call.set_argument(stack, "self", at::empty(result.local_sizes[call.index], options.dtype(dtype)));
}

/// The size argument is the local result's.
void local_sizes(const LocalCall& call, torch::jit::Stack& stack) {
  forget_partial(call, stack);
  call.set_argument(stack, "size", call.plan.results[0]->local_sizes[call.index]);
  call.op.callBoxed(stack);
}

void local_like(const LocalCall& call, torch::jit::Stack& stack) {
  forget_partial(call, stack);
  call.op.callBoxed(stack);
}

/// Strides are the local tensor's own; the global ones, which no kernel sees, still have to be some.
void local_sizes_and_strides(const LocalCall& call, torch::jit::Stack& stack) {
  for (const int64_t given : call.argument(stack, "stride").toIntVector())
    if (given < 0) fail<BadInput>("{}: stride {} is negative", call.op.schema().name(), given);
  const auto& sizes = call.plan.results[0]->local_sizes[call.index];
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  forget_partial(call, stack);
  call.set_argument(stack, "size", sizes);
  call.set_argument(stack, "stride", strides);
  call.op.callBoxed(stack);
}

/// Nothing of the operand is read but its sizes.
constexpr Rule like_row(const char* op, LocalFunction local = local_like) {
  return {op, "factory", "...->...", "-", Rule::kReadsSizesOnly, like, nullptr, local};
}
constexpr Rule factory_row(const char* op, unsigned traits = Rule::kPlain) {
  return {op, "factory", "->...", "-", traits};
}

/// LibTorch says their number nowhere but in the op itself.
template <at::Tensor (*kIndices)(int64_t, int64_t, int64_t, at::TensorOptions)>
std::vector<ResultShape> triangle_shape(const Call& call) {
  const auto number = [&](const char* name) { return call.argument(name).toInt(); };
  const auto indices = kIndices(number("row"), number("col"), number("offset"), at::TensorOptions(c10::kLong));
  const auto& dtype = call.argument("dtype");
  return {{indices.sizes().vec(), {}, dtype.isNone() ? c10::kLong : dtype.toScalarType()}};
}

constexpr Rule kRows[] = {
    factory_row("arange", Rule::kSizesFromScalars),
    factory_row("arange.start", Rule::kSizesFromScalars),
    factory_row("arange.start_step", Rule::kSizesFromScalars),
    factory_row("empty.memory_format"),
    factory_row("empty_permuted"),
    factory_row("empty_strided"),
    factory_row("eye"),
    factory_row("eye.m"),
    factory_row("full"),
    factory_row("linspace"),
    factory_row("logspace"),
    factory_row("ones"),
    factory_row("scalar_tensor"),
    {"tril_indices", "factory", "->...", "-", Rule::kPlain, nullptr, triangle_shape<at::tril_indices>},
    {"triu_indices", "factory", "->...", "-", Rule::kPlain, nullptr, triangle_shape<at::triu_indices>},
    factory_row("zeros"),
    like_row("empty_like"),
    like_row("new_empty", local_sizes),
    like_row("new_empty_strided", local_sizes_and_strides),
    like_row("new_ones", local_sizes),
    like_row("new_zeros", local_sizes),
    like_row("ones_like"),
    like_row("zeros_like"),
};

}  // namespace

std::span<const Rule> factories() { return kRows; }

}  // namespace lockstep::rules
