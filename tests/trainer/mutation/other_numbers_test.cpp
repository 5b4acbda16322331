// Numbers that are told wrong: to the optimizer, to an op.
#include "trainer/mutation/other_numbers.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "trainer/mutation/other_calls.h"

namespace lockstep::trainer {
namespace {

Mutant number_mutant(Change change, double amount) {
  Mutant mutant{.change = change, .amount = amount};
  mutant.site.kind = Site::Kind::kNumber, mutant.site.tensor = "rate";
  return mutant;
}

/// What the second of two steps is told in place of 5, where the first had 3.
double second_number(Change change, double amount = 2) {
  std::map<int64_t, double> given;
  other_number(number_mutant(change, amount), 1, 3, given);
  return other_number(number_mutant(change, amount), 2, 5, given);
}

TEST(OtherNumber, IsAsTheMutantSays) {
  EXPECT_EQ(second_number(Change::kOld), 3);
  EXPECT_EQ(second_number(Change::kPlus), 7);
  EXPECT_EQ(second_number(Change::kZero), 0);
  EXPECT_EQ(second_number(Change::kTimes), 10);
}

/// Has a rate, and counts its updates.
struct Counting final : Optimizer {
  explicit Counting(int& count) : updates(count) {}
  std::vector<SlotKind> slots(const ParameterState&) const override { return {}; }
  std::vector<StepScalar> scalars(int64_t, double rate, double scale) const override {
    return {{"rate", rate}, {"scale", scale}};
  }
  void update(const ParameterState&, const at::Tensor&, std::span<const StepScalar>) const override { ++updates; }
  int& updates;
};

TEST(OtherNumber, IsTheOnlyThingThatChanges) {
  int updates = 0;
  int64_t changes = 0;
  const auto wrong = with_other_number(
      std::make_unique<Counting>(updates), number_mutant(Change::kTimes, 2), [](int64_t step) { return step == 2; },
      changes);
  EXPECT_EQ(wrong->scalars(1, 0.5, 3)[0].value, 0.5);
  EXPECT_EQ(changes, 0);
  EXPECT_EQ(wrong->scalars(2, 0.5, 3)[0].value, 1);
  EXPECT_EQ(wrong->scalars(2, 0.5, 3)[1].value, 3);
  EXPECT_EQ(changes, 2);
  const models::Division whole({1}, {{"w", 1, {}}});
  wrong->update({"w", {}, true, {}, whole}, {}, {});
  EXPECT_EQ(updates, 1);
}

struct Always final : FaultyCalls {
  bool is_due(const OpId&, int rank) override { return rank == 1; }
  void note_change() override { ++changes; }
  int changes = 0;
};

/// x + alpha x, where rank 1 is told another alpha than 2.5.
TEST(OtherCalls, TellOneRankAnotherNumber) {
  for (const auto& [change, alpha] : {std::pair{Change::kPlus, 3.0}, {Change::kZero, 0.0}, {Change::kTimes, 1.25}}) {
    Mutant mutant{.change = change, .amount = 0.5};
    mutant.site.kind = Site::Kind::kArgument, mutant.site.id.op = "add.Tensor", mutant.site.ordinal = 2;
    Always faulty;
    World::Options options;
    options.rules = with_other_calls(*built_in_rules(), mutant, faulty);
    const auto world = lockstep::testing::simulated_world({{"tp", 2}}, options);
    const auto x = distribute(at::ones({4}), Layout::parse(world->mesh("tp=2"), "[tp=S(0)]"));
    const float right = 3.5F, wrong = static_cast<float>(1 + alpha);
    EXPECT_TRUE(at::equal(gather(at::add(x, x, 2.5)), at::tensor({right, right, wrong, wrong})));
    EXPECT_EQ(faulty.changes, 1);
  }
}

}  // namespace
}  // namespace lockstep::trainer
