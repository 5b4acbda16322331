// Gradients through rows of the op table, and through the ops above it that models call.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/trials/rule_properties.h"
#include "fuzz/trials/second_derivatives.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

std::vector<OpCase> differentiable_cases() {
  auto all = composite_cases();
  for (const auto& op_case : op_cases())
    if (op_case.is(OpCase::kGradient)) all.push_back(op_case);
  return all;
}

class RulesBackward : public ::testing::TestWithParam<OpCase> {};

TEST_P(RulesBackward, GradientsEqualOneDevice) {
  const auto failure = failure_of_counted(GetParam().op + "/gradients", GetParam().op, case_count(50),
                                          [] { gradients_equal_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
}

class RulesDoubleBackward : public ::testing::TestWithParam<OpCase> {};

TEST_P(RulesDoubleBackward, GradientsOfGradientsEqualOneDevice) {
  const auto failure = failure_of(GetParam().op + "/double_gradients", case_count(10),
                                  [] { double_gradients_equal_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
}

std::vector<OpCase> twice_differentiable_cases() {
  auto all = differentiable_cases();
  std::erase_if(all, [](const OpCase& op_case) { return has_no_second_derivative(op_case.op); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, RulesDoubleBackward, ::testing::ValuesIn(twice_differentiable_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Rows, RulesBackward, ::testing::ValuesIn(differentiable_cases()), test_name);

/// Whether LibTorch differentiates the op: a result of floating leaves asks for a gradient, and gets one.
bool has_a_gradient(const OpCase& op_case) {
  const Numerics numerics{c10::kDouble, false, Domain::kDeclared};
  Inputs inputs(numerics.dtype, false);
  const auto call = make_call(op_case.called, op_case.draw(inputs));
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    auto leaf = call.tensor(i).detach().clone();
    leaves.push_back(leaf.is_floating_point() && !call.writes(i) ? leaf.requires_grad_() : leaf);
  }
  at::Tensor total;
  for (const auto& result : run(call.op, with_tensors(call, leaves)))
    if (result.requires_grad()) total = total.defined() ? total + result.sum() : result.sum();
  if (total.defined()) total.backward();
  return std::any_of(leaves.begin(), leaves.end(), [](const auto& leaf) { return leaf.grad().defined(); });
}

/// Rows whose gradients are checked under another name, and why.
const std::map<std::string, const char*>& checked_elsewhere() {
  static const std::map<std::string, const char*> reasons{
      {"_linalg_eigh", "refused in some layouts: LibTorch's formula copies into a diagonal"},
      {"binary_cross_entropy", "refused in some layouts: the target's gradient is written in place"},
      {"binary_cross_entropy_backward", "refused in some layouts: the target's gradient is written in place"},
      {"clamp.Tensor", "refused in some layouts: LibTorch's formula joins masks in place"},
      {"glu", "refused: glu_backward has no rule"},
      {"mesh::expert_rows", "gives packed rows; tests/runtime/own_ops/experts_test.cpp"},
      {"mesh::expert_sums", "takes them; the same"},
      {"huber_loss_backward", "LibTorch's own second derivative has the wrong sizes where it is broadcast"},
      {"linalg_vector_norm", "refused for unfinished sums: LibTorch's formula masks in place"},
      {"masked_scatter", "refused: masked_scatter_backward has no rule"},
      {"norm.ScalarOpt_dim", "refused for unfinished sums: LibTorch's formula masks in place"},
      {"norm.ScalarOpt_dim_dtype", "refused for unfinished sums: LibTorch's formula masks in place"},
      {"std.correction", "refused for unfinished sums: LibTorch's formula masks in place"},
      {"std_mean.correction", "refused for unfinished sums: LibTorch's formula masks in place"},
      {"sgn", "refused: its gradient, zero, is of a kind of tensor that a mesh does not have"},
      {"embedding_dense_backward", "refused: its gradient, the second derivative of embedding, needs index_select"}};
  return reasons;
}

TEST(RulesBackwardTable, ChecksWhateverHasAGradientInLibTorch) {
  for (const auto& op_case : op_cases()) {
    if (op_case.op.starts_with("mesh::") || op_case.is(OpCase::kFactory) || op_case.is(OpCase::kOwnPeer)) continue;
    bool any = false;
    int ran = 0;
    const auto failure = failure_of(op_case.op + "/has a gradient", 20, [&] { any |= has_a_gradient(op_case), ++ran; });
    if (ran == 0)
      EXPECT_THAT(failure, ::testing::AnyOf(HasSubstr(" is not implemented"), HasSubstr(" is not differentiable"),
                                            HasSubstr("only for real scalar")));
    const bool elsewhere = checked_elsewhere().contains(op_case.op);
    if (op_case.is(OpCase::kGradient))
      EXPECT_FALSE(elsewhere) << op_case.op << " checks its gradient: take it off the list";
    else
      EXPECT_EQ(any, elsewhere) << op_case.op
                                << (any ? " has a gradient in LibTorch, its case does not check it"
                                        : " has no gradient in LibTorch: take it off the list");
  }
}

}  // namespace
}  // namespace lockstep::testing
