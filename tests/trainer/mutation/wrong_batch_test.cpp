#include "trainer/mutation/wrong_batch.h"

#include <gtest/gtest.h>

namespace lockstep::trainer {
namespace {

const TokenBatch kRight{2, 3, {1, 2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}};

Mutant rolled(const char* what) {
  Mutant mutant;
  mutant.site.tensor = what, mutant.change = Change::kRoll, mutant.amount = 0;
  return mutant;
}

TEST(WrongBatch, ChangesWhatTheMutantSays) {
  const std::vector<int64_t> tokens{4, 5, 6, 1, 2, 3}, labels{5, 6, 7, 2, 3, 4};
  for (const char* what : {"tokens", "labels", "rows"}) {
    Memory memory;
    int64_t changes = 0;
    const auto wrong = wrong_batch(rolled(what), true, kRight, memory, changes);
    const std::string_view name = what;
    EXPECT_EQ(wrong.tokens, name == "labels" ? kRight.tokens : tokens) << what;
    EXPECT_EQ(wrong.labels, name == "tokens" ? kRight.labels : labels) << what;
    EXPECT_EQ(changes, name == "rows" ? 2 : 1) << what;
  }
}

TEST(WrongBatch, BeforeItsStepIsRemembered) {
  Memory memory;
  int64_t changes = 0;
  auto mutant = rolled("tokens");
  mutant.change = Change::kOld;
  EXPECT_EQ(wrong_batch(mutant, false, kRight, memory, changes).tokens, kRight.tokens);
  EXPECT_EQ(changes, 0);
  auto next = kRight;
  next.tokens = {9, 8, 7, 6, 5, 4};
  EXPECT_EQ(wrong_batch(mutant, true, next, memory, changes).tokens, kRight.tokens);
  EXPECT_EQ(changes, 1);
}

}  // namespace
}  // namespace lockstep::trainer
