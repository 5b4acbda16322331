// Canonical numerics: every row of the op table, and what models call above them, gives one rank's bits on any mesh, in
// any layouts, over any transport; forward and backward.
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "fuzz/trials/canonical_trial.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

std::vector<OpCase> differentiable_cases() {
  auto all = composite_cases();
  for (const auto& op_case : op_cases())
    if (op_case.is(OpCase::kGradient)) all.push_back(op_case);
  return all;
}

class CanonicalRules : public ::testing::TestWithParam<OpCase> {};
class CanonicalGradients : public ::testing::TestWithParam<OpCase> {};

TEST_P(CanonicalRules, AnyLayoutGivesOneRanksBits) {
  for (const auto reach : {Reach::kShort, Reach::kLong}) {
    const auto id = GetParam().op + (reach == Reach::kShort ? "/canonical" : "/canonical long");
    const auto failure = failure_of_counted(
        id, GetParam().op, canonical_case_count(GetParam()),
        [&] { canonical_bits_equal_one_rank(GetParam(), reach, false); }, refused_by_canonical(GetParam().op));
    if (!failure.empty()) FAIL() << failure;
  }
}

TEST_P(CanonicalGradients, AnyLayoutGivesOneRanksBits) {
  for (const auto reach : {Reach::kShort, Reach::kLong}) {
    const auto id = GetParam().op + (reach == Reach::kShort ? "/canonical gradients" : "/canonical gradients long");
    const auto failure = failure_of_counted(
        id, GetParam().op, case_count(40), [&] { canonical_bits_equal_one_rank(GetParam(), reach, true); },
        refused_by_canonical(GetParam().op));
    if (!failure.empty()) FAIL() << failure;
  }
}

std::vector<at::Tensor> linear_gradients(int64_t ranks, int64_t samples) {
  const auto world = simulated_world({{"cp", ranks}}, {.numerics = lockstep::Numerics::kCanonical});
  const auto& mesh = world->mesh({{"cp", ranks}});
  const BatchScope batch({.count = samples});
  const auto fractions = [](c10::IntArrayRef sizes) { return exact_tensor(sizes, c10::kFloat).mul(0.1); };
  const auto put = [&](const at::Tensor& plain, const char* layout) {
    return distribute(plain, Layout::parse(mesh, layout));
  };
  const auto weight = put(fractions({5, 3}), "[]").requires_grad_(), bias = put(fractions({5}), "[]").requires_grad_();
  const char* cut = ranks == 1 ? "[]" : "[cp=S(1)]";
  at::linear(put(fractions({6, 66, 3}), cut), weight, bias).backward(put(fractions({6, 66, 5}), cut));
  return {gather(weight.grad()), gather(bias.grad())};
}

/// A sample can be several rows: it is still one sum over all its positions, whoever has them.
TEST(CanonicalLinear, GradientsDoNotDependOnWhoHasAPosition) {
  for (const int64_t samples : {6, 3, 2, 1, 0}) {
    const auto expected = linear_gradients(1, samples);
    for (const int64_t ranks : {2, 3}) {
      const auto actual = linear_gradients(ranks, samples);
      EXPECT_TRUE(same_bits(actual[0], expected[0])) << "weight, " << ranks << " ranks, " << samples << " samples";
      EXPECT_TRUE(same_bits(actual[1], expected[1])) << "bias, " << ranks << " ranks, " << samples << " samples";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CanonicalRules, ::testing::ValuesIn(valued_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Rows, CanonicalGradients, ::testing::ValuesIn(differentiable_cases()), test_name);

}  // namespace
}  // namespace lockstep::testing
