// How the ops of experts are called, with all rows: packed rows come from expert_rows alone.
#include <ATen/Functions.h>

#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

struct ExpertSizes {
  int64_t samples, experts, length, width, choices;
};

ExpertSizes draw_sizes(Inputs& in) {
  ExpertSizes s{in.number(1, 3), in.number(1, 4), in.length(5), in.length(5), 1};
  s.choices = in.number(1, s.experts);
  return s;
}

/// Of each token different experts, and sometimes none.
at::Tensor draw_experts(Inputs& in, const ExpertSizes& s) {
  const auto first = in.integers({s.samples, s.length, 1}, 0, s.experts - 1);
  const auto next = at::arange(s.choices, c10::kLong).view({1, 1, s.choices});
  const auto chosen = first.add(next).remainder(s.experts);
  return at::where(in.integers({s.samples, s.length, s.choices}, 0, 7).eq(0), at::full({}, -1, c10::kLong), chosen);
}

at::Tensor draw_rows(Inputs& in, const ExpertSizes& s, int64_t width) {
  return in.tensor({s.samples, s.experts, s.length, width});
}

at::Tensor draw_weights(Inputs& in, const ExpertSizes& s) { return in.tensor({s.samples, s.length, s.choices}); }

Stack draw_expert_rows(Inputs& in) {
  const auto s = draw_sizes(in);
  return {in.tensor({s.samples, s.length, s.width}), draw_experts(in, s), draw_weights(in, s), s.experts};
}

Stack draw_expert_sums(Inputs& in) {
  const auto s = draw_sizes(in);
  return {draw_rows(in, s, s.width), draw_experts(in, s), draw_weights(in, s)};
}

Stack draw_expert_factors(Inputs& in) {
  const auto s = draw_sizes(in);
  return {draw_rows(in, s, s.width), in.tensor({s.samples, s.length, s.width}), draw_experts(in, s)};
}

Stack draw_expert_linear(Inputs& in) {
  const auto s = draw_sizes(in);
  return {draw_rows(in, s, s.width), in.tensor({s.experts, in.length(5), s.width})};
}

Stack draw_expert_gradient(Inputs& in) {
  const auto s = draw_sizes(in);
  return {draw_rows(in, s, in.length(5)), draw_rows(in, s, s.width)};
}

}  // namespace

/// Gradients of rows that are packed are compared by tests/runtime/own_ops/experts_test.cpp: what the properties here
/// do with results, such as multiplying all elements, packed rows refuse.
std::vector<OpCase> expert_cases() {
  return {
      {"mesh::expert_factors", kExact, draw_expert_factors},
      {"mesh::expert_linear", kExact | kGradient, draw_expert_linear},
      {"mesh::expert_rows", kExact, draw_expert_rows},
      {"mesh::expert_sample_weight_gradient", kExact, draw_expert_gradient},
      {"mesh::expert_sums", kExact, draw_expert_sums},
      {"mesh::expert_weight_gradient", kExact, draw_expert_gradient},
  };
}

}  // namespace lockstep::testing
