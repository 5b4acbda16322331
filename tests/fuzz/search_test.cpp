// The search itself: which cases it tries, what it says of failures, and that nothing passes by not being compared.
#include "fuzz/search/search.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <signal.h>
#include <unistd.h>

#include "core/error.h"
#include "fuzz/checks/layout_checks.h"
#include "fuzz/search/case_run.h"
#include "fuzz/trials/rule_properties.h"

namespace lockstep::fuzz {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SearchOptions of_cases(int64_t cases, int workers = 0) {
  SearchOptions options;
  options.seed = 7, options.seconds = 600, options.cases = cases, options.workers = workers;
  options.shrink_seconds = 5;
  return options;
}

/// What forked workers can do after this process has used autograd's threads and shared memory.
Checks plain_checks() {
  auto checks = layout_checks();
  std::erase_if(
      checks, [](const Check& check) { return check.name.ends_with("gradients") || check.name.ends_with("threads"); });
  return checks;
}

/// Holds below a hundred.
void is_small() {
  const auto number = *rc::gen::inRange(0, 1000);
  ++lockstep::testing::compared_cases()["numbers"];
  if (number >= 100) RC_FAIL("no small number: " + std::to_string(number));
}

TEST(Search, TriesTheSameCasesHoweverManyWorkersThereAre) {
  const auto alone = search(plain_checks(), of_cases(200, 1)), three = search(plain_checks(), of_cases(200, 3)),
             here = search(plain_checks(), of_cases(200));
  EXPECT_EQ(here.digest, alone.digest);
  EXPECT_EQ(here.digest, three.digest);
  EXPECT_EQ(three.cases, 200);
  for (const auto& failure : three.failures) ADD_FAILURE() << to_text(failure.name) << ": " << failure.message;
  EXPECT_EQ(three.total().compared + three.total().refused, 200);
  auto other = of_cases(200);
  other.seed = 8;
  EXPECT_NE(search(plain_checks(), other).digest, here.digest);
}

/// Also of another compiler and machine.
TEST(Search, TriesTheSameCasesEverywhere) {
  EXPECT_EQ(to_text(nth_case("mm/layouts", 7, 12345)), "mm/layouts@2f2ee010ea58ee58:8");
  EXPECT_EQ(search(plain_checks(), of_cases(40)).digest, 186731102706207777u);
}

TEST(Search, ShrinksToTheSmallestThatFails) {
  for (const int workers : {0, 2}) {
    const auto result = search({{"numbers", is_small}}, of_cases(50, workers));
    ASSERT_EQ(result.failures.size(), 1u);
    EXPECT_EQ(result.failures[0].message, "no small number: 100");
    const auto again = run_case({"numbers", is_small}, result.failures[0].name);
    EXPECT_TRUE(again.failed());
    EXPECT_EQ(again.message, result.failures[0].message);
  }
}

TEST(Search, NamesTheFirstCaseThatFailsWhoeverFindsIt) {
  const auto alone = search({{"numbers", is_small}}, of_cases(500, 1)),
             four = search({{"numbers", is_small}}, of_cases(500, 4));
  ASSERT_EQ(four.failures.size(), 1u);
  EXPECT_EQ(to_text(alone.failures[0].name), to_text(four.failures[0].name));
}

TEST(Search, ACheckThatComparesNothingHasFailed) {
  const auto result = search({{"idle", [] {}}, {"allowed", [] {}, true}}, of_cases(100, 1));
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures[0].name.check, "idle");
  EXPECT_EQ(result.failures[0].message, "50 cases, and nothing was compared: all were refused or left out");
}

TEST(Search, ACaseThatEndsItsProcessIsAFailureAndOthersGoOn) {
  const auto dies = [] {
    if (*rc::gen::inRange(0, 8) == 3) ::raise(SIGKILL);
    ++lockstep::testing::compared_cases()["dies"];
  };
  const auto result =
      search({{"dies", dies}, {"small", [] { ++lockstep::testing::compared_cases()["small"]; }}}, of_cases(200, 2));
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures[0].message, "the process dies of Killed");
  EXPECT_EQ(result.tallies[1].cases, 100);
}

/// What failed is told, whatever becomes of what is smaller.
TEST(Search, AFailureIsToldWhereASmallerCaseEndsTheProcess) {
  const auto check = [] {
    const auto number = *rc::gen::inRange(0, 1000);
    if (number > 0 && number < 400) ::raise(SIGKILL);
    if (number >= 400) RC_FAIL("no small number");
  };
  SearchOptions options = of_cases(1, 1);
  for (options.seed = 1; nth_case("numbers", options.seed, 0).size < 100; ++options.seed) continue;
  int told = 0;
  for (; options.seed < 20; ++options.seed) {
    const auto result = search({{"numbers", check}}, options);
    ASSERT_LE(result.failures.size(), 1u);
    if (result.failures.empty()) continue;
    told += result.failures[0].message == "no small number";
  }
  EXPECT_GT(told, 2);
}

TEST(Search, AFailureThatHoldsWhenItRunsAgainSaysSo) {
  int runs = 0;
  const auto flaky = [&runs] {
    ++lockstep::testing::compared_cases()["flaky"];
    if (++runs == 3) RC_FAIL("another number of results");
  };
  const auto result = search({{"flaky", flaky}}, of_cases(5));
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures[0].message,
            "another number of results (It held when it ran again: it depends on more than what is drawn.)");
}

TEST(Search, ACaseThatDoesNotEndIsAFailure) {
  auto options = of_cases(2, 1);
  options.case_seconds = 0.2, options.shrink_seconds = 0.2;
  const auto result = search({{"hangs", [] { ::pause(); }}}, options);
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures[0].message, "no end within 0.2 s");
}

TEST(Search, StopsAtTheFirstFailureIfAsked) {
  auto options = of_cases(0, 2);
  options.first_only = true;
  EXPECT_LT(search({{"numbers", is_small}, {"other", [] { ++lockstep::testing::compared_cases()["other"]; }}}, options)
                .seconds,
            60);
}

TEST(Search, ExceptionsAreFailuresWithoutLibTorchsStack) {
  const auto outcome = run_case(
      {"throws", [] { throw std::runtime_error("wrong\nException raised from here\nframe"); }}, {"throws", 1, 100});
  EXPECT_EQ(outcome.message, "wrong");
}

TEST(CaseNames, AreReadAsTheyAreWritten) {
  for (const CaseName& name : {CaseName{"mesh::rms_norm/layouts", 0xfedcba9876543210, 100, {}},
                               CaseName{"add.Tensor/gradients", 1, 3, {0, 12, 3}}})
    EXPECT_EQ(parse_case_name(to_text(name)), name);
  EXPECT_EQ(to_text({"mm/layouts", 0x5eed, 100, {0, 3}}), "mm/layouts@5eed:100:0.3");
}

TEST(CaseNames, RefuseWhatIsNone) {
  for (const char* text : {"", "mm", "mm@", "mm@5eed", "mm@5eed:", "mm@xyz:100", "mm@5eed:100:a", "mm@5eed:100:1..2",
                           "mm@123456789012345678901:100"})
    EXPECT_THROW(parse_case_name(text), BadInput) << text;
}

TEST(CaseNames, StepsThatLeadNowhereAreRefused) {
  EXPECT_THROW(run_case({"numbers", is_small}, {"numbers", 1, 100, {99999}}), BadInput);
}

}  // namespace
}  // namespace lockstep::fuzz
