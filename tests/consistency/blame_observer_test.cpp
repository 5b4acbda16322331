// What a comparison of two runs says of ops that only one of them has. (Faults of training: tests/trainer/verify.)
#include "consistency/blame_observer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "fuzz/cases/tensors.h"
#include "runtime/context/run_context.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

using Program = std::function<void(const at::Tensor& x)>;

void run_on(int64_t ranks, const Program& program, Observer& observer) {
  RunContext context;
  const RunContext::Use use(context);
  const auto world = testing::simulated_world({{"tp", ranks}});
  const auto x = distribute(testing::exact_tensor({4, 6}), Layout::parse(world->mesh({{"tp", ranks}}), "[tp=S(0)]"));
  const ObserverScope scope(world->observers(), observer);
  program(x);
}

Blame compared(const Program& reference, const Program& candidate) {
  OpTrace trace(kBits);
  run_on(1, reference, trace);
  BlameObserver blamer(trace, kBits);
  run_on(2, candidate, blamer);
  EXPECT_FALSE(blamer.blame());
  return blamer.blame_of_none();
}

void added(const at::Tensor& x) { at::add(x, x); }
void added_and_multiplied(const at::Tensor& x) { at::add(x, x), at::mul(x, x); }

TEST(BlameOfNone, SaysThatEverythingAgreesWhereEverythingWasCompared) {
  const auto blame = compared(added_and_multiplied, added_and_multiplied);
  EXPECT_EQ(blame.id, "none: every op and every move agrees with one device's");
  EXPECT_EQ(blame.before, "2 ops with what they took, and 0 moves between layouts, agree");
}

/// What the allocator gives is what was there before.
Program without_writing(double left_behind) {
  return [left_behind](const at::Tensor& x) {
    for (const int64_t rows : {2, 4}) static_cast<void>(at::full({rows, 6}, left_behind));
    at::empty_like(x).fill_(2), at::add(x, x);
  };
}

TEST(BlameOfNone, DoesNotCompareMemoryThatNobodyWrote) {
  const auto blame = compared(without_writing(3), without_writing(7));
  EXPECT_EQ(blame.id, "none: every op and every move agrees with one device's");
}

TEST(BlameOfNone, CountsOpsThatOneDeviceDoesNotHave) {
  const auto blame = compared(added, added_and_multiplied);
  EXPECT_EQ(blame.id, "none of those that were compared: ops and moves agree with one device's");
  EXPECT_EQ(blame.before,
            "1 ops with what they took, and 0 moves between layouts, agree; 1 without a counterpart on one device are "
            "not compared (the first: step 0, microbatch 0, init, mul.Tensor #0)");
}

TEST(BlameOfNone, CountsOpsThatTheMeshDoesNotHave) {
  const auto blame = compared(added_and_multiplied, added);
  EXPECT_EQ(blame.id, "none of those that were compared: ops and moves agree with one device's");
  EXPECT_THAT(blame.before, HasSubstr("; 1 of one device did not come (the first: step 0, microbatch 0, init, "
                                      "mul.Tensor #0)"));
}

}  // namespace
}  // namespace lockstep
