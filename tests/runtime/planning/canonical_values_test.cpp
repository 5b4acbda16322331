// Canonical numerics against LibTorch in float64: every row of the op table and what models call above them, forward
// and backward. Bounds here are wide; closeness_test.cpp derives tight ones for the ops that add.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <map>

#include "fuzz/trials/canonical_trial.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/mutants.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

/// What float64 cannot be the measure of, and why.
const std::map<std::string, const char*>& not_compared(bool gradients) {
  static const std::map<std::string, const char*> values{
      {"mesh::attention", "its second result is to base 2; attention is compared whole"},
      {"mesh::attention_backward", "takes that"},
      {"mesh::attention_over", "sums are scaled by a power of two that rounding chooses"},
      {"mesh::attention_over_backward", "takes a log-sum-exp to base 2"},
      {"mesh::attention_result", "gives one"},
      {"mesh::document_attention_backward", "t - D cancels: what is left is the rounding of its output"},
      {"mesh::document_attention_over", "as attention_over"},
      {"mesh::document_attention_over_backward", "as attention_over_backward"},
      {"_conj", "the float64 domain has no complex numbers; it negates"},
      {"_conj_physical", "the float64 domain has no complex numbers; it negates"},
      {"complex", "the same; it moves"},
      {"view_as_complex", "the same; it moves"},
      {"view_as_real", "the same; it moves"}};
  static const std::map<std::string, const char*> of_gradients{
      {"_to_copy", "is rounded through the other dtype"},
      {"embedding_dense_backward", "has no second derivative on a mesh"}};
  return gradients ? of_gradients : values;
}

std::vector<OpCase> cases_of(bool gradients) {
  auto all = composite_cases();
  for (const auto& op_case : op_cases())
    if (gradients ? op_case.is(OpCase::kGradient) : !op_case.is(OpCase::kFactory) && !op_case.is(OpCase::kNoValues))
      all.push_back(op_case);
  std::erase_if(all, [&](const OpCase& op_case) { return not_compared(gradients).contains(op_case.op); });
  return all;
}

constexpr int kCases = 40;  ///< of a row, for each reach

void expect_close(const OpCase& op_case, bool gradients) {
  for (const auto reach : {Reach::kShort, Reach::kLong}) {
    // An exponential makes of a score's rounding error one as many times as large as the score: no bound that is any.
    if (gradients && reach == Reach::kLong && op_case.op == "scaled_dot_product_attention") continue;
    const auto id = fmt::format("{}/{}{}", op_case.op, gradients ? "float64 gradients" : "float64",
                                reach == Reach::kLong ? " long" : "");
    const auto failure = failure_of_counted(
        id, op_case.op, case_count(kCases), [&] { canonical_values_are_close(op_case, reach, gradients); },
        refused_by_canonical(op_case.op));
    if (!failure.empty()) FAIL() << failure;
  }
}

class CanonicalValues : public ::testing::TestWithParam<OpCase> {};
class CanonicalGradientValues : public ::testing::TestWithParam<OpCase> {};

TEST_P(CanonicalValues, AreCloseToFloat64) { expect_close(GetParam(), false); }
TEST_P(CanonicalGradientValues, AreCloseToFloat64) { expect_close(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Rows, CanonicalValues, ::testing::ValuesIn(cases_of(false)), test_name);
INSTANTIATE_TEST_SUITE_P(Rows, CanonicalGradientValues, ::testing::ValuesIn(cases_of(true)), test_name);

LocalFunction right = nullptr;  ///< of the row that is broken

/// The same on every mesh: equal bits everywhere, and wrong.
void a_little_more(const LocalCall& call, Stack& stack) {
  if (right)
    right(call, stack);
  else
    call.op.callBoxed(stack);
  const auto result = stack[0].toTensor();
  stack[0] = result.is_floating_point() ? at::mul(result, 1.001).to(result.scalar_type()) : result;
}

TEST(CanonicalValues, NoticeWhatIsWrongOnEveryMeshAlike) {
  for (const char* op : {"mm", "sum.dim_IntList", "exp", "mesh::swiglu", "_softmax", "mesh::rms_norm", "mul.Tensor"}) {
    const auto canonical = built_in_rules(lockstep::Numerics::kCanonical);
    auto rule = *canonical->find(op);
    right = std::exchange(rule.local, a_little_more);
    const auto rules = canonical->with(rule);
    const auto& op_case = *std::find_if(op_cases().begin(), op_cases().end(), [&](auto& c) { return c.op == op; });
    expect_noticed(op, kCases, [&] { canonical_values_are_close(op_case, Reach::kShort, false, rules); });
  }
}

}  // namespace
}  // namespace lockstep::testing
