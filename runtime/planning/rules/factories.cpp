// Ops that make tensors of given sizes, or like a given one. The result lies as the operand where sizes agree.
#include "runtime/rule_set.h"

namespace lockstep::rules {
namespace {

Form like(const Call& call) {
  FormDims dims;
  for (int d = 0; d < call.dims(0); ++d) dims.push_back({d});
  Form form;
  form.operands = {dims};
  const bool same = call.results[0].sizes == call.operand_sizes[0];
  form.results = {same ? dims : FormDims(call.results[0].sizes.size(), FormDim{})};
  form.can_reduce = false;
  return form;
}

/// The size argument (number 1) is the local result's.
void local_sizes(const LocalCall& call, torch::jit::Stack& stack) {
  stack[1] = call.plan.results[0]->local_sizes[call.index];
  call.op.callBoxed(stack);
}

/// Strides are the local tensor's own.
void local_sizes_and_strides(const LocalCall& call, torch::jit::Stack& stack) {
  const auto& sizes = call.plan.results[0]->local_sizes[call.index];
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  stack[1] = sizes;
  stack[2] = strides;
  call.op.callBoxed(stack);
}

/// `linearity` "e": a Partial's shards of zeros (or of nothing yet) are again a Partial.
constexpr Rule like_row(const char* op, const char* linearity, LocalFunction local = nullptr) {
  return {op, "factory", "...->...", linearity, Rule::kExact, like, nullptr, local};
}
constexpr Rule factory_row(const char* op) { return {op, "factory", "->...", "-", Rule::kPlain}; }

constexpr Rule kRows[] = {
    factory_row("arange"),
    factory_row("arange.start"),
    factory_row("arange.start_step"),
    factory_row("empty.memory_format"),
    factory_row("empty_strided"),
    factory_row("full"),
    factory_row("ones"),
    factory_row("scalar_tensor"),
    factory_row("zeros"),
    like_row("empty_like", "e"),
    like_row("new_empty", "e", local_sizes),
    like_row("new_empty_strided", "e", local_sizes_and_strides),
    like_row("new_ones", "-", local_sizes),
    like_row("new_zeros", "e", local_sizes),
    like_row("ones_like", "-"),
    like_row("zeros_like", "e"),
};

}  // namespace

std::span<const Rule> factories() { return kRows; }

}  // namespace lockstep::rules
