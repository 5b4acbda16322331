// How the rows of runtime/planning/rules/factories.cpp are called; the table of all cases.
#include <ATen/Functions.h>

#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;
/// Values mean nothing: no two calls agree.
constexpr unsigned kEmpty = kExact | kNoValues;

OpCase factory(const char* op, unsigned traits, std::function<Stack(Inputs&)> draw) {
  return {op, traits | kFactory, std::move(draw)};
}

OpCase like(const char* op, unsigned traits) {
  return {op, traits, [](Inputs& in) { return Stack{in.tensor(in.sizes(0, 3))}; }};
}

/// Of the operand's own sizes, or of others.
OpCase of_sizes(const char* op, unsigned traits) {
  return {op, traits, [](Inputs& in) {
            const auto sizes = in.sizes(0, 3);
            return Stack{in.tensor(sizes), in.flag() ? sizes : in.sizes(0, 3)};
          }};
}

Stack draw_strided(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {sizes, at::empty(sizes).strides().vec()};
}

Stack draw_new_strided(Inputs& in) {
  auto stack = draw_strided(in);
  stack.insert(stack.begin(), in.tensor(in.flag() ? stack[0].toIntVector() : in.sizes(0, 3)));
  return stack;
}

}  // namespace

std::vector<OpCase> factory_cases() {
  return {
      factory("arange", kExact, [](Inputs& in) { return Stack{at::Scalar(in.number(0, 9))}; }),
      factory("arange.start", kExact,
              [](Inputs& in) {
                return Stack{at::Scalar(2), at::Scalar(in.number(2, 9))};
              }),
      factory("arange.start_step", kExact,
              [](Inputs& in) {
                return Stack{at::Scalar(2), at::Scalar(in.number(2, 9)), at::Scalar(2)};
              }),
      factory("empty.memory_format", kEmpty, [](Inputs& in) { return Stack{in.sizes(0, 3)}; }),
      factory("empty_permuted", kEmpty,
              [](Inputs& in) {
                return Stack{Sizes{in.number(0, 3), in.number(0, 3)}, Sizes{1, 0}};
              }),
      factory("empty_strided", kEmpty, draw_strided),
      factory("eye", kExact, [](Inputs& in) { return Stack{in.number(0, 5)}; }),
      factory("eye.m", kExact,
              [](Inputs& in) {
                return Stack{in.number(0, 5), in.number(0, 5)};
              }),
      factory("full", kExact,
              [](Inputs& in) {
                return Stack{in.sizes(0, 3), at::Scalar(2.5)};
              }),
      factory("linspace", kReal | kDeclared,
              [](Inputs& in) {
                return Stack{at::Scalar(-1.5), at::Scalar(in.number(-2, 9)), in.number(0, 9)};
              }),
      factory("logspace", kReal | kDeclared,
              [](Inputs& in) {
                return Stack{at::Scalar(0), at::Scalar(in.number(1, 3)), in.number(0, 9), 2.0};
              }),
      factory("ones", kExact, [](Inputs& in) { return Stack{in.sizes(0, 3)}; }),
      factory("scalar_tensor", kExact, [](Inputs& in) { return Stack{at::Scalar(in.number(0, 9))}; }),
      factory("tril_indices", kExact,
              [](Inputs& in) {
                return Stack{in.number(0, 4), in.number(0, 4), in.number(-2, 2)};
              }),
      factory("triu_indices", kExact,
              [](Inputs& in) {
                return Stack{in.number(0, 4), in.number(0, 4), in.number(-2, 2)};
              }),
      factory("zeros", kExact, [](Inputs& in) { return Stack{in.sizes(0, 3)}; }),
      like("empty_like", kEmpty),
      of_sizes("new_empty", kEmpty),
      {"new_empty_strided", kEmpty, draw_new_strided},
      of_sizes("new_ones", kExact),
      of_sizes("new_zeros", kExact),
      like("ones_like", kExact),
      like("zeros_like", kExact),
  };
}

const std::vector<OpCase>& op_cases() {
  static const auto all = [] {
    std::vector<OpCase> cases;
    for (const auto family :
         {pointwise_cases, pointwise_function_cases, along_cases, spatial_cases, indexing_cases, view_cases,
          contraction_cases, expert_cases, row_cases, attention_cases, random_cases, factory_cases})
      for (auto& entry : family()) cases.push_back(entry);
    return cases;
  }();
  return all;
}

std::vector<OpCase> valued_cases() {
  std::vector<OpCase> all;
  for (const auto& cases : {op_cases(), composite_cases()})
    for (const auto& op_case : cases)
      if (!op_case.is(OpCase::kFactory) && !op_case.is(OpCase::kNoValues)) all.push_back(op_case);
  return all;
}

}  // namespace lockstep::testing
