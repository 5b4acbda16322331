#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/planning/plan.h"

namespace lockstep::own_ops {

namespace detail {

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

}  // namespace detail

/// An op's local call by one of runtime/kernels/tensors' functions, which has canonical bits on every device: where the
/// kernel that is registered for a GPU has native ones.
template <auto* kFunction>
void direct_call(const LocalCall& /*call*/, torch::jit::Stack& stack) {
  detail::call(*kFunction, stack);
}

}  // namespace lockstep::own_ops
