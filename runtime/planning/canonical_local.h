#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/kernels/tensors/canonical_products.h"
#include "runtime/kernels/tensors/canonical_sums.h"
#include "runtime/planning/plan.h"

/// What canonical local functions have in common: which part of a sum a rank has, and what becomes of its nodes.
namespace lockstep {

/// The tree over the first dimension of operand 0, as the plan has it. REQUIRES: the row has Rule::kSamples.
const SumTree& batch_tree(const LocalCall& call);

/// The dimension `dim` of operand `slot` on this rank.
kernels::Summands summands_here(const LocalCall& call, size_t slot, int dim, const SumTree& tree);

/// The same of a contraction, in units of `unit` elements; all where the result is no sum that stays open.
kernels::ContractedRange contracted_here(const LocalCall& call, size_t slot, int64_t dim, int64_t unit = 1);

/// The size of dimension `dim` of operand `slot` on all ranks together.
int64_t global_size(const LocalCall& call, size_t slot, int64_t dim);

/// Nodes of the first result as they are where that is an ordered Partial; the one sum in `dtype` where it is whole.
at::Tensor finished_sum(const LocalCall& call, const at::Tensor& nodes, c10::ScalarType dtype);

/// Rule::kDisjoint in front of kSummands: +0 is added, so that an element that is -0 gives what ranks that hold it and
/// ranks that do not add up to.
template <LocalFunction kSummands>
void local_disjoint(const LocalCall& call, torch::jit::Stack& stack) {
  kSummands(call, stack);
  stack = {stack.back().toTensor().add(0.0)};
}

namespace direct {

template <class T>
void leave(torch::jit::Stack& stack, T result) {
  stack = {std::move(result)};
}
template <class... T>
void leave(torch::jit::Stack& stack, std::tuple<T...> results) {
  stack = std::apply([](auto&... each) { return torch::jit::Stack{std::move(each)...}; }, results);
}

template <class Result, class... Arguments>
void call(Result (&function)(Arguments...), torch::jit::Stack& stack) {
  const auto run = [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return function(stack[kIndex].template to<std::decay_t<Arguments>>()...);
  };
  const auto all = std::index_sequence_for<Arguments...>();
  if constexpr (std::is_void_v<Result>)
    run(all), stack.clear();
  else
    leave(stack, run(all));
}

}  // namespace direct

/// An op's local call by one of runtime/kernels/tensors' functions, which has canonical bits on every device: where the
/// kernel that is registered for a GPU has native ones.
template <auto* kFunction>
void direct_call(const LocalCall& /*call*/, torch::jit::Stack& stack) {
  direct::call(*kFunction, stack);
}

}  // namespace lockstep
