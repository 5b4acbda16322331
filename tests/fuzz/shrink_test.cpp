// The case of a finding made smaller: what is left fails still, in the same way, and is as small as it gets.
#include "fuzz/shrink/shrink.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/shrink/smaller_cases.h"
#include "replay/op_case/case_run.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::fuzz {
namespace {

using lockstep::testing::exact_tensor;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The second rank's part is twice what it should be.
void twice_on_one_rank(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  if (call.index == 1) stack = {stack[0].toTensor() * 2};
}

Rules broken(const char* op) {
  auto rule = *built_in_rules()->find(op);
  rule.local = twice_on_one_rank;
  return built_in_rules()->with(rule);
}

replay::OpCase case_of(const char* op, const char* mesh, std::vector<std::pair<at::Tensor, const char*>> operands,
                       const char* domain = "float64") {
  WholeCase whole;
  whole.origin.id = "step 1, a case", whole.origin.op = std::string("aten::") + op;
  whole.origin.numerics = "native", whole.origin.domain = domain;
  whole.axes = parse_mesh_axes(mesh);
  const auto world = lockstep::testing::simulated_world(whole.axes);
  for (const auto& [value, layout] : operands) {
    whole.operands.push_back(
        {{static_cast<int>(whole.operands.size()), -1}, Layout::parse(world->mesh(whole.axes), layout).placements()});
    whole.arguments.push_back(value);
  }
  whole.origin.mesh = mesh;
  return cut_case(whole);
}

replay::OpCase large_product() {
  return case_of("mm", "a=2,b=2,c=2",
                 {{exact_tensor({16, 12}), "[a=S(0), b=S(1)]"}, {exact_tensor({12, 8}), "[b=S(0), c=S(1)]"}});
}

TEST(Shrink, LeavesTheLeastThatFails) {
  const auto rules = broken("mm");
  ASSERT_TRUE(replay::run_case(large_product(), rules));
  const auto shrunk = shrink(large_product(), 30, rules);
  EXPECT_EQ(shrunk.before,
            "aten::mm(Float[16, 12] [a=S(0), b=S(1), c=R], Float[12, 8] [a=R, b=S(0), c=S(1)]) on a=2,b=2,c=2");
  EXPECT_EQ(shrunk.after, "aten::mm(Float[1, 1] [c=R], Float[1, 1] [c=R]) on c=2");
  EXPECT_TRUE(replay::run_case(shrunk.smallest, rules));
  EXPECT_FALSE(replay::run_case(shrunk.smallest)) << "without the fault it agrees";
  EXPECT_THAT(shrunk.finding, HasSubstr("result of mm[0, 0] = 2, one device: 1"));
  EXPECT_GT(shrunk.tried, 5);
}

TEST(Shrink, RefusesWhatAgrees) {
  try {
    shrink(large_product(), 5);
    ADD_FAILURE() << "accepted";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "it agrees with one device here: there is nothing to make smaller");
  }
}

TEST(Shrink, RefusesAnOpWithoutARule) {
  auto one = large_product();
  one.op = "aten::from_file";
  EXPECT_THROW(shrink(one, 5), BadInput);
}

/// Sizes that an op is told follow those of its operands; indices stay below what they are of.
TEST(SmallerCases, KeepWhatBelongsTogether) {
  const auto whole =
      whole_case(case_of("mm", "a=2", {{exact_tensor({6, 4}), "[a=S(1)]"}, {exact_tensor({4, 2}), "[]"}}));
  bool any = false;
  for (const auto& smaller : smaller_cases(whole)) {
    const auto left = smaller.value(smaller.operands[0]), right = smaller.value(smaller.operands[1]);
    any |= left.size(1) == 1 && right.size(0) == 1 && left.size(0) == 6;
  }
  EXPECT_TRUE(any);
}

TEST(SmallerCases, AreSmallerEach) {
  const auto weight = [](const WholeCase& one) {
    int64_t sum = 0;
    for (const auto& axis : one.axes) sum += 1 + axis.size;
    for (const auto& operand : one.operands) {
      const auto value = one.value(operand);
      sum += 10 * value.numel() + value.count_nonzero().item<int64_t>() - 100 * operand.simplicity;
      for (const auto& placement : operand.placements) sum += placement.is_replicate() ? 0 : 1 + placement.unit;
    }
    return sum;
  };
  const auto whole = whole_case(large_product());
  const auto all = smaller_cases(whole);
  EXPECT_GT(all.size(), 20u);
  for (const auto& smaller : all) EXPECT_LT(weight(smaller), weight(whole));
}

}  // namespace
}  // namespace lockstep::fuzz
