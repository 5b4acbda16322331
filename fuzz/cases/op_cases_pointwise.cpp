// How the rows of runtime/planning/rules/pointwise.cpp are called.
#include <ATen/Functions.h>
#include <rapidcheck.h>

#include <limits>

#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

OpCase unary(const char* op, unsigned traits, Stack more = {}) {
  return {op, traits, [more](Inputs& in) {
            Stack stack{in.tensor(in.sizes(0, 3))};
            stack.insert(stack.end(), more.begin(), more.end());
            return stack;
          }};
}

OpCase positive_unary(const char* op, unsigned traits) {
  return {op, traits, [](Inputs& in) { return Stack{in.positive(in.sizes(0, 3))}; }};
}

OpCase binary(const char* op, unsigned traits) {
  return {op, traits, [](Inputs& in) {
            const auto sizes = in.sizes(0, 3);
            return Stack{in.tensor(in.broadcast(sizes)), in.wider(in.broadcast(sizes))};
          }};
}

/// Two operands of one shape.
OpCase backward(const char* op, unsigned traits, Stack more = {}) {
  return {op, traits, [more](Inputs& in) {
            const auto sizes = in.sizes(0, 3);
            Stack stack{in.tensor(sizes), in.tensor(sizes)};
            stack.insert(stack.end(), more.begin(), more.end());
            return stack;
          }};
}

/// Exact, or by tanh.
Stack draw_gelu(Inputs& in) { return {in.tensor(in.sizes(0, 3)), std::string(in.flag() ? "tanh" : "none")}; }

OpCase compare_to_scalar(const char* op) { return unary(op, kExact | kIntegers, {at::Scalar(1)}); }

OpCase of_masks(const char* op, int operands) {
  return {op, kExact, [operands](Inputs& in) {
            const auto sizes = in.sizes(0, 3);
            Stack stack;
            for (int i = 0; i < operands; ++i) stack.push_back(in.mask(in.broadcast(sizes)));
            return stack;
          }};
}

OpCase of_integers(const char* op, int operands) {
  return {op, kExact, [operands](Inputs& in) {
            const auto sizes = in.sizes(0, 3);
            Stack stack;
            for (int i = 0; i < operands; ++i) stack.push_back(in.integers(in.broadcast(sizes), -9, 9));
            return stack;
          }};
}

/// Some elements infinite, some NaN.
OpCase classifier(const char* op) {
  return {op, kExact, [](Inputs& in) {
            const auto sizes = in.sizes(0, 3);
            auto x = in.tensor(sizes).masked_fill(in.mask(sizes), std::numeric_limits<double>::infinity());
            return Stack{x.masked_fill(in.mask(sizes), std::numeric_limits<double>::quiet_NaN())};
          }};
}

Stack draw_summand_of_product(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {in.tensor(in.broadcast(sizes)), in.tensor(in.broadcast(sizes)), in.positive(in.broadcast(sizes)),
          in.factor(2)};
}

Stack draw_copy(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {in.tensor(sizes), in.wider(in.broadcast(sizes))};
}

Stack draw_cast(Inputs& in) {
  const auto from = *rc::gen::element(in.dtype(), c10::kBFloat16, c10::kFloat, c10::kLong);
  const auto to = *rc::gen::element(c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kLong);
  return {in.distinct(in.sizes(0, 3)).to(from), static_cast<int64_t>(to)};
}

std::vector<OpCase> compound_cases() {
  return {
      {"_to_copy", kExact | kGradient, draw_cast},
      {"add.Tensor", kExact | kIntegers | kGradient,
       [](Inputs& in) {
         const auto sizes = in.sizes(0, 3);
         return Stack{in.tensor(in.broadcast(sizes)), in.wider(in.broadcast(sizes)), in.factor(2)};
       }},
      {"addcdiv", kExact | kGradient, draw_summand_of_product},
      {"addcmul", kExact | kGradient, draw_summand_of_product},
      {"copy", kExact | kIntegers, draw_copy},
      {"div.Tensor", kExact | kIntegers | kGradient,
       [](Inputs& in) {
         const auto sizes = in.sizes(0, 3);
         return Stack{in.tensor(in.broadcast(sizes)), in.positive(in.broadcast(sizes))};
       }},
      {"lerp.Scalar", kExact | kGradient,
       [](Inputs& in) {
         const auto sizes = in.sizes(0, 3);
         return Stack{in.tensor(in.broadcast(sizes)), in.tensor(in.broadcast(sizes)),
                      in.exact() ? at::Scalar(0.5) : in.factor(1)};
       }},
      {"masked_fill.Scalar", kExact | kIntegers | kGradient,
       [](Inputs& in) {
         const auto sizes = in.sizes(0, 3);
         return Stack{in.tensor(sizes), in.mask(in.broadcast(sizes)), at::Scalar(7)};
       }},
      {"pow.Tensor_Scalar", kReal | kGradient,
       [](Inputs& in) {
         return Stack{in.positive(in.sizes(0, 3)), at::Scalar(*rc::gen::element(2.0, 0.5, -1.0, 3.0, 1.7))};
       }},
      {"pow.Tensor_Tensor", kReal | kGradient,
       [](Inputs& in) {
         const auto sizes = in.sizes(0, 3);
         return Stack{in.positive(in.broadcast(sizes)), in.tensor(in.broadcast(sizes))};
       }},
      {"sub.Tensor", kExact | kIntegers | kGradient,
       [](Inputs& in) {
         const auto sizes = in.sizes(0, 3);
         return Stack{in.tensor(in.broadcast(sizes)), in.wider(in.broadcast(sizes)), in.factor(2)};
       }},
      {"where.self", kExact | kIntegers | kGradient,
       [](Inputs& in) {
         const auto sizes = in.sizes(0, 3);
         return Stack{in.mask(in.broadcast(sizes)), in.tensor(in.broadcast(sizes)), in.tensor(in.broadcast(sizes))};
       }},
  };
}

std::vector<OpCase> simple_cases() {
  return {unary("abs", kExact | kIntegers | kGradient),
          unary("add.Scalar", kExact | kIntegers | kGradient, {at::Scalar(3)}),
          of_integers("bitwise_and.Tensor", 2),
          of_integers("bitwise_not", 1),
          of_integers("bitwise_or.Tensor", 2),
          unary("clamp", kExact | kIntegers | kGradient, {at::Scalar(-1), at::Scalar(2)}),
          unary("clamp_min", kExact | kIntegers | kGradient, {at::Scalar(1)}),
          unary("clone", kExact | kIntegers | kGradient),
          unary("cos", kReal | kGradient),
          unary("div.Scalar", kExact | kIntegers | kGradient, {at::Scalar(4)}),
          compare_to_scalar("eq.Scalar"),
          binary("eq.Tensor", kExact | kIntegers),
          unary("erf", kReal | kGradient),
          unary("exp", kReal | kGradient),
          unary("fill.Scalar", kExact | kIntegers | kGradient, {at::Scalar(5)}),
          compare_to_scalar("ge.Scalar"),
          binary("ge.Tensor", kExact | kIntegers),
          {"gelu", kReal | kGradient, draw_gelu},
          backward("gelu_backward", kReal | kGradient),
          compare_to_scalar("gt.Scalar"),
          binary("gt.Tensor", kExact | kIntegers),
          classifier("isfinite"),
          classifier("isinf"),
          classifier("isnan"),
          compare_to_scalar("le.Scalar"),
          binary("le.Tensor", kExact | kIntegers),
          positive_unary("log", kReal | kGradient),
          positive_unary("log1p", kReal | kGradient),
          of_masks("logical_and", 2),
          of_masks("logical_not", 1),
          of_masks("logical_or", 2),
          compare_to_scalar("lt.Scalar"),
          binary("lt.Tensor", kExact | kIntegers),
          binary("maximum", kExact | kIntegers | kGradient),
          binary("minimum", kExact | kIntegers | kGradient),
          unary("mul.Scalar", kExact | kIntegers | kGradient, {at::Scalar(-3)}),
          binary("mul.Tensor", kExact | kIntegers | kGradient),
          compare_to_scalar("ne.Scalar"),
          binary("ne.Tensor", kExact | kIntegers),
          unary("neg", kExact | kIntegers | kGradient),
          positive_unary("reciprocal", kReal | kGradient),
          unary("relu", kExact | kIntegers | kGradient),
          positive_unary("rsqrt", kReal | kGradient),
          unary("rsub.Scalar", kExact | kIntegers | kGradient, {at::Scalar(2), at::Scalar(3)}),
          unary("sgn", kExact),
          unary("sigmoid", kReal | kGradient),
          backward("sigmoid_backward", kReal | kGradient),
          unary("sign", kExact | kIntegers | kGradient),
          unary("silu", kReal | kGradient),
          backward("silu_backward", kReal),
          unary("sin", kReal | kGradient),
          positive_unary("sqrt", kReal | kGradient),
          unary("square", kExact | kIntegers | kGradient),
          unary("sub.Scalar", kExact | kIntegers | kGradient, {at::Scalar(3), at::Scalar(2)}),
          unary("tanh", kReal | kGradient),
          backward("tanh_backward", kReal | kGradient),
          backward("threshold_backward", kExact | kGradient, {at::Scalar(0)}),
          unary("zero", kExact | kIntegers | kGradient)};
}

}  // namespace

std::vector<OpCase> pointwise_cases() {
  auto cases = simple_cases();
  for (auto& entry : compound_cases()) cases.push_back(entry);
  return cases;
}

}  // namespace lockstep::testing
