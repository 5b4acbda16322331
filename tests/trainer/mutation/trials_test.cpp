#include "trainer/mutation/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "trainer/mutation/score.h"

namespace lockstep::trainer {
namespace {

const Trials& trials() {
  static const Trials all;
  return all;
}

std::vector<Mutant> drawn(const char* of_class, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  return draw_mutants(of_class, trials().stages(), count, random);
}

TEST(MutantClasses, EachHasPlacesInTheRuns) {
  std::set<std::string> names;
  for (const auto& [name, text] : mutant_classes()) {
    EXPECT_TRUE(names.insert(name).second);
    const auto mutants = drawn(name, 20, 1);
    EXPECT_GE(mutants.size(), 15u) << name << " " << text;
    std::set<std::string> texts;
    for (const auto& mutant : mutants) texts.insert(mutant.text() + std::to_string(mutant.amount));
    EXPECT_GE(texts.size(), mutants.size() - 2) << name;
  }
  EXPECT_EQ(names.size(), 20u);
}

TEST(MutantClasses, ASeedDrawsTheSameAgain) {
  for (const auto* name : {"M4", "M13", "M18"}) {
    const auto first = drawn(name, 10, 3), again = drawn(name, 10, 3), other = drawn(name, 10, 4);
    ASSERT_EQ(first.size(), again.size());
    bool differs = false;
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].text(), again[i].text());
      differs |= first[i].text() != other[i].text();
    }
    EXPECT_TRUE(differs) << name;
  }
}

TEST(Trials, AFaultIsCaughtAndNamed) {
  for (const auto& mutant : drawn("M15", 4, 1)) {
    const auto trial = trials().run(mutant);
    EXPECT_TRUE(trial.is_equivalent || trial.is_caught()) << mutant.text();
    EXPECT_TRUE(trial.is_equivalent || trial.is_exact) << mutant.text() << "\n" << trial.report;
  }
}

/// A factor of one is no fault: nothing changes, and nothing is said to be caught.
TEST(Trials, NoChangeIsEquivalent) {
  auto mutant = drawn("M4", 1, 1).at(0);
  mutant.amount = 1;
  const auto trial = trials().run(mutant);
  EXPECT_TRUE(trial.is_equivalent);
  EXPECT_FALSE(trial.is_caught());
  for (const auto& [name, sees] : trial.others) EXPECT_FALSE(sees) << name;
}

TEST(Trials, StepsWithoutAFaultRaiseNoAlarm) {
  const auto clean = trials().run_clean(2);
  EXPECT_EQ(clean.alarms, 0);
  EXPECT_EQ(clean.meshes, static_cast<int64_t>(trials().stages().size()) + 2);
  EXPECT_EQ(clean.steps, 3 * clean.meshes);  // one of them under native numerics
  EXPECT_GT(clean.values, 1000000);
  EXPECT_GT(clean.cases, 5000);
}

TEST(MutationScore, CountsWhatWasTried) {
  MutationScore score;
  Trial caught{Mutant{.of_class = "M4"}}, survivor{Mutant{.of_class = "M4"}}, same{Mutant{.of_class = "M5"}};
  caught.caught_by = "step", caught.at_step = 2, caught.others = {{"loss curve", true}};
  survivor.others = {{"loss curve", false}};
  same.is_equivalent = true;
  for (const auto& trial : {caught, survivor, same}) score.add(trial, "text");
  EXPECT_EQ(score.all.mutants, 3);
  EXPECT_EQ(score.all.that_count(), 2);
  EXPECT_EQ(score.all.caught, 1);
  EXPECT_EQ(score.classes.at("M5").equivalent, 1);
  EXPECT_EQ(score.others.at("loss curve"), 1);
  EXPECT_EQ(score.survivors.size(), 1u);
  EXPECT_EQ(score.misnamed.size(), 1u);
  EXPECT_EQ(score.at_step.at("2"), 1);
}

}  // namespace
}  // namespace lockstep::trainer
