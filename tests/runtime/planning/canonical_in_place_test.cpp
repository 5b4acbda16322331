// Under canonical numerics an op that writes its operand gives the bits of the op that does not, on any mesh.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fuzz/cases/tensors.h"
#include "fuzz/trials/canonical_trial.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/mutants.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

/// Not squeeze_ and its like, which write no elements.
std::vector<OpCase> written_cases() {
  const auto& rules = *built_in_rules(lockstep::Numerics::kCanonical);
  std::vector<OpCase> all;
  for (const auto& op_case : op_cases()) {
    const auto op = in_place_form(op_case.op);
    if (op && rules.find(op_name(*op)) && !op_case.is(OpCase::kOwnPeer)) all.push_back(op_case);
  }
  return all;
}

at::Tensor one_nan(const at::Tensor& x) { return x.is_floating_point() ? x.masked_fill(at::isnan(x), NAN) : x; }

/// Property: the call that writes gives what the call that does not gives, in the dtype of what is written.
void writing_gives_the_same_bits(const OpCase& op_case, Reach reach, const Rules& rules = {}) {
  auto trial = draw_canonical(op_case, reach, false);
  const auto self = trial.call.tensor(0);
  const auto expected = on_the_mesh(trial);
  auto writing = trial;
  writing.call = make_call(op_name(*in_place_form(op_case.op)), trial.call.arguments);
  const auto actual = on_the_mesh(writing, rules);
  for (size_t group = 0; group < actual.size(); ++group) {
    if (expected[group].tensors.empty()) return;
    if (expected[group].tensors[0].sizes() != self.sizes()) RC_DISCARD("it does not fit what is written");
    for (const char* reason : {"would have to move", "the write would be lost", "is a view or has views"})
      if (actual[group].refusal.find(reason) != std::string::npos) return;
    if (!actual[group].refusal.empty()) RC_FAIL(describe(writing) + ": " + actual[group].refusal);
    ++compared_cases()[op_case.op];
    for (const auto& written : actual[group].tensors)
      if (!same_bits(one_nan(written), one_nan(expected[group].tensors[0].to(self.scalar_type()))))
        RC_FAIL(describe(writing) + ": other bits than " + op_case.op);
  }
}

constexpr int kCases = 25;  ///< for each reach

class CanonicalInPlace : public ::testing::TestWithParam<OpCase> {};

TEST_P(CanonicalInPlace, GivesTheBitsOfTheFunction) {
  for (const auto reach : {Reach::kShort, Reach::kFlat}) {
    const auto failure = failure_of_counted(
        GetParam().op + "/writes", GetParam().op, case_count(kCases),
        [&] { writing_gives_the_same_bits(GetParam(), reach); }, refused_by_canonical(GetParam().op));
    if (!failure.empty()) FAIL() << failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CanonicalInPlace, ::testing::ValuesIn(written_cases()), test_name);

/// Rounds what it writes to bfloat16.
void narrow_when_written(const LocalCall& call, Stack& stack) {
  call.op.callBoxed(stack);
  if (call.plan.written >= 0) stack[0].toTensor().copy_(stack[0].toTensor().to(at::kBFloat16));
}

TEST(CanonicalWrites, AreComparedInAllBits) {
  auto rule = *built_in_rules(lockstep::Numerics::kCanonical)->find("exp");
  rule.local = narrow_when_written;
  const auto rules = built_in_rules(lockstep::Numerics::kCanonical)->with(rule);
  const auto& exp = *std::find_if(op_cases().begin(), op_cases().end(), [](auto& c) { return c.op == "exp"; });
  expect_noticed("writes in bfloat16", kCases, [&] { writing_gives_the_same_bits(exp, Reach::kFlat, rules); });
}

/// Out forms run as the functional op, into the layout of what is written.
TEST(CanonicalWrites, OutFormsGiveTheFunctionalOpsBits) {
  World::Options options;
  options.numerics = lockstep::Numerics::kCanonical;
  const auto world = simulated_world({{"tp", 2}}, options);
  const auto& mesh = world->mesh("tp=2");
  const auto x = distribute(exact_tensor({4}), Layout::parse(mesh, "[tp=S(0)]"));
  auto out = distribute(exact_tensor({4}), Layout::replicated(mesh));
  at::exp_out(out, x);
  EXPECT_TRUE(same_bits(gather(out), gather(at::exp(x))));
  EXPECT_EQ(layout_of(out), Layout::replicated(mesh));
}

}  // namespace
}  // namespace lockstep::testing
