// What is drawn of each kind: a fault that shows in such a case alone is found.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/checks/op_checks.h"
#include "runtime/planning/plan.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/fuzz/only_failure.h"

namespace lockstep::fuzz {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const RuleSet> rules_with(lockstep::Numerics numerics, const char* op, LocalFunction local) {
  auto rule = *built_in_rules(numerics)->find(op);
  rule.local = local;
  return built_in_rules(numerics)->with(rule);
}

Checks native_checks(const char* op, LocalFunction local, const std::string& name) {
  return of(op_checks(rules_with(lockstep::Numerics::kNative, op, local)), name);
}

TEST(PlantedDraws, SecondDerivatives) {
  EXPECT_TRUE(failures_of(native_checks("neg", twice_on_one_rank, "sin/gradients"), 100).empty());
  const auto failure = only_failure(native_checks("neg", twice_on_one_rank, "sin/double_gradients"), 200);
  EXPECT_THAT(failure.message, HasSubstr("second gradient of "));
}

template <c10::ScalarType kWrong>
void wrong_dtype(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  if (auto result = stack[0].toTensor(); result.scalar_type() == kWrong) result.zero_();
}

TEST(PlantedDraws, DtypesThatNoCaseDeclares) {
  const auto message = [](LocalFunction local) {
    return only_failure(native_checks("clone", local, "clone/layouts"), 1000).message;
  };
  EXPECT_THAT(message(wrong_dtype<c10::kByte>), HasSubstr("clone(Byte"));
  EXPECT_THAT(message(wrong_dtype<c10::kBool>), HasSubstr("clone(Bool"));
  EXPECT_THAT(message(wrong_dtype<c10::kComplexFloat>), HasSubstr("clone(ComplexFloat"));
  EXPECT_THAT(message(wrong_dtype<c10::kFloat8_e4m3fn>), HasSubstr("clone(Float8_e4m3fn"));
  EXPECT_THAT(message(wrong_dtype<c10::kFloat8_e5m2>), HasSubstr("clone(Float8_e5m2"));
}

bool has_repeats(const at::Tensor& tensor) {
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    if (tensor.size(dim) > 1 && tensor.stride(dim) == 0) return true;
  return false;
}

/// Zero of what has strides of 0.
void wrong_of_repeats(const LocalCall& call, torch::jit::Stack& stack) {
  const bool repeats = has_repeats(stack[0].toTensor());
  call.op.callBoxed(stack);
  if (repeats) stack[0] = at::zeros_like(stack[0].toTensor());
}

TEST(PlantedDraws, OperandsThatRepeatElements) {
  for (const char* check : {"relu/layouts", "relu/candidates", "relu/gradients"})
    EXPECT_THAT(only_failure(native_checks("relu", wrong_of_repeats, check), 2000).message, HasSubstr("expanded"));
}

/// No zero that is negative.
void without_sign(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  if (call.index == 1) stack[0].toTensor().add_(0);
}

void without_nan(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  if (call.index == 1) stack[0].toTensor().nan_to_num_(0, HUGE_VAL, -HUGE_VAL);
}

TEST(PlantedDraws, SignsOfZerosAndNaN) {
  for (const auto local : {without_sign, without_nan}) {
    const auto canonical = rules_with(lockstep::Numerics::kCanonical, "clone", local);
    EXPECT_THAT(only_failure(of(op_checks({}, canonical), "clone/canonical"), 400).message, HasSubstr("differs in"));
  }
}

/// Twice as much where some ranks live elsewhere.
void wrong_in_groups(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  const auto& mesh = call.plan.results[0]->layout.mesh();
  if (static_cast<int>(mesh.local_count()) < mesh.rank_count()) stack[0].toTensor().mul_(2);
}

TEST(PlantedDraws, RanksInTwoGroups) {
  const auto failure = only_failure(native_checks("relu", wrong_in_groups, "relu/layouts"), 400);
  EXPECT_THAT(failure.message, HasSubstr("in two groups"));
}

}  // namespace
}  // namespace lockstep::fuzz
