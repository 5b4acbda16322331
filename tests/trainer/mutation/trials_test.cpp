#include "trainer/mutation/trials/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "trainer/mutation/expectation.h"
#include "trainer/mutation/trials/one_op_check.h"
#include "trainer/mutation/trials/score.h"

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
  EXPECT_EQ(names.size(), 21u);
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

/// A flipped bit is in one place of one rank.
TEST(MutantClasses, WhatIsOfOneRankSaysOfWhich) {
  std::set<int> ranks;
  for (const auto& mutant : drawn("M18", 20, 1)) {
    if (mutant.site.kind == Site::Kind::kSaved) continue;  // a checkpoint is everyone's
    EXPECT_EQ(mutant.ranks.size(), 1U) << mutant.text();
    ranks.insert(mutant.ranks.begin(), mutant.ranks.end());
  }
  EXPECT_GE(ranks.size(), 3U);
}

/// AdamW takes it as a number of its own; SGD multiplies the gradient.
TEST(MutantClasses, AClipsScaleIsFoundInEveryOptimizer) {
  std::set<std::string> places;
  for (const auto& mutant : drawn("M16", 48, 1))
    if (mutant.site.kind == Site::Kind::kArgument)
      places.insert(fmt::format("{} {} {} #{}", mutant.setup.optimizer, mutant.site.id.op, mutant.site.tensor,
                                mutant.site.id.occurrence));
  EXPECT_THAT(places, ::testing::ElementsAre("AdamW mesh::adamw gradient_scale #0", "SGD mul.Scalar other #0"));
}

TEST(Trials, AFaultIsCaughtAndNamed) {
  for (const auto& mutant : drawn("M14", 4, 1)) {
    const auto trial = trials().run(mutant);
    EXPECT_TRUE(trial.is_equivalent || trial.is_caught()) << mutant.text();
    EXPECT_TRUE(trial.is_equivalent || trial.verdict.is_named) << mutant.text() << "\n" << trial.verdict.report;
  }
}

/// The first place of a kind, of one tensor or number if `tensor` says so.
Mutant mutant_at(Site::Kind kind, Change change, const std::string& tensor = "", const std::string& setup = "") {
  for (const auto& stage : trials().stages())
    for (const auto& site : stage.sites) {
      const bool fits = site.kind == kind && (tensor.empty() || site.tensor == tensor);
      if (!fits || stage.setup.text().find(setup) == std::string::npos) continue;
      return {.of_class = "M0", .setup = stage.setup, .site = site, .change = change, .amount = 2};
    }
  ADD_FAILURE() << "no place has " << tensor;
  return {};
}

void expect_caught(Mutant mutant, const std::string& mode, int64_t step) {
  mutant.expected = expectation_of(mutant);
  const auto trial = trials().run(mutant);
  EXPECT_FALSE(trial.is_equivalent) << mutant.text();
  EXPECT_GT(trial.changes + (mode == "load"), 0) << mutant.text();
  EXPECT_EQ(trial.verdict.mode, mode) << mutant.text() << "\n" << trial.verdict.report;
  EXPECT_EQ(trial.verdict.step, step) << mutant.text();
  EXPECT_TRUE(trial.verdict.is_named) << mutant.text() << "\n" << trial.verdict.report;
}

TEST(Survey, FindsEveryKindOfPlace) {
  std::set<Site::Kind> kinds;
  for (const auto& stage : trials().stages())
    for (const auto& site : stage.sites) kinds.insert(site.kind);
  EXPECT_EQ(kinds.size(), static_cast<size_t>(Site::Kind::kMetadata) + 1);
}

TEST(Trials, WhatAStepIsGivenIsCompared) {
  for (const auto* what : {"rows", "tokens", "labels"})
    expect_caught(mutant_at(Site::Kind::kBatch, Change::kRoll, what), "data", 1);
  auto rate = mutant_at(Site::Kind::kRate, Change::kTimes);
  rate.step = 3;
  expect_caught(rate, "rate", 3);
}

TEST(Trials, StateIsComparedAtTheStartBetweenStepsAndAtTheEnd) {
  auto state = mutant_at(Site::Kind::kState, Change::kTimes, "layers.0.attention.wo.weight");
  for (const int64_t step : {1, 2, 4}) {
    state.step = step, state.ranks = {1};
    expect_caught(state, "start", step);
  }
  auto slot = mutant_at(Site::Kind::kState, Change::kZero, "optimizer.mean.layers.0.attention.wo.weight");
  slot.step = 4;
  expect_caught(slot, "start", 4);
  slot.step = 2;
  expect_caught(slot, "step", 2);  // the update reads it
  slot.resumes = true;
  expect_caught(slot, "start", 2);
}

TEST(Trials, WhatACheckpointHoldsIsCompared) {
  for (const auto* what : {"sample", "learning_rate", "state"}) {
    auto mutant = mutant_at(Site::Kind::kMetadata, Change::kPlus, what);
    mutant.resumes = true;
    expect_caught(mutant, "load", 1);
  }
  auto saved = mutant_at(Site::Kind::kSaved, Change::kRoll);
  saved.resumes = true;
  expect_caught(saved, "load", 1);
}

/// Also where copies of a parameter have gradients that differ: no move is to blame for that.
TEST(Trials, WhatMicrobatchesAddToGradientsIsCompared) {
  for (const auto* parameter : {"layers.0.ffn_norm.weight", "layers.0.attention.wo.weight"}) {
    auto mutant = mutant_at(Site::Kind::kGradient, Change::kTimes, parameter, "tp=2, 2 microbatches");
    expect_caught(mutant, "step", 1);
    mutant.ranks = {1};
    expect_caught(mutant, "step", 1);
  }
}

TEST(Trials, ANumberOfOneRankIsItsOps) {
  auto mutant = mutant_at(Site::Kind::kArgument, Change::kTimes, "gradient_scale");
  mutant.ranks = {1};
  expect_caught(mutant, "step", 1);
  EXPECT_EQ(expectation_of(mutant).ranks, mutant.ranks);
}

/// On two ranks, and only there.
TEST(OneOpCheck, SeesWhatAForwardGivesByItself) {
  std::set<std::string> tried;
  for (const auto& stage : trials().stages())
    for (const auto* name : {"mesh::swiglu", "linear", "embedding", "gelu"})
      for (const auto& site : stage.sites) {
        if (site.kind != Site::Kind::kOp || site.id.op != name || site.id.phase != Phase::kForward) continue;
        Mutant mutant{.of_class = "M4", .setup = stage.setup, .site = site, .change = Change::kTimes, .amount = 1.01};
        EXPECT_TRUE(is_seen_by_one_op(mutant)) << mutant.text();
        mutant.amount = 1;
        EXPECT_FALSE(is_seen_by_one_op(mutant)) << mutant.text();
        mutant.amount = 1.01, mutant.ranks = {1};  // it has half of the rows
        const bool has_odd_rows = stage.setup.mesh == "dp_shard=3" && site.id.op == "mesh::swiglu";  // are not cut
        EXPECT_EQ(is_seen_by_one_op(mutant), !has_odd_rows) << mutant.text();
        mutant.ranks = {2};
        EXPECT_FALSE(is_seen_by_one_op(mutant)) << mutant.text();
        tried.insert(name);
        break;
      }
  EXPECT_THAT(tried, ::testing::ElementsAre("embedding", "gelu", "linear", "mesh::swiglu"));
}

TEST(Trials, WhatDoesNotComeBackIsSaid) {
  auto mutant = drawn("M15", 1, 1).at(0);
  mutant.step = 2, mutant.is_transient = true;
  expect_caught(mutant, "step", 2);
  mutant.is_transient = false;
  mutant.expected = {.is_transient = true};
  EXPECT_FALSE(trials().run(mutant).verdict.is_named);
}

TEST(Expectation, EachPartHasToBeNamed) {
  const Expectation expected{.kind = "collective", .id = "step 0, microbatch 1, x #1", .axis = "tp", .ranks = {1}};
  Blame right{.kind = "collective", .id = "step 2, microbatch 1, x #1", .axis = "tp", .ranks = {1}};
  EXPECT_TRUE(is_named(expected, right, ""));
  auto wrong = right;
  wrong.id = "step 2, microbatch 1, x #0";
  EXPECT_FALSE(is_named(expected, wrong, ""));
  wrong = right, wrong.axis = "cp";
  EXPECT_FALSE(is_named(expected, wrong, ""));
  wrong = right, wrong.ranks = {};
  EXPECT_FALSE(is_named(expected, wrong, ""));
  wrong = right, wrong.transient = true;
  EXPECT_FALSE(is_named(expected, wrong, ""));
  EXPECT_FALSE(is_named({.value = "learning_rate"}, right, "loss"));
  EXPECT_TRUE(is_named({.value = "learning_rate"}, right, "learning_rate = 1"));
}

/// A factor of one is no fault: nothing changes, and nothing is said to be caught.
TEST(Trials, NoChangeIsEquivalent) {
  auto mutant = drawn("M4", 1, 1).at(0);
  mutant.amount = 1;
  const auto trial = trials().run(mutant);
  EXPECT_TRUE(trial.is_equivalent);
  EXPECT_FALSE(trial.is_caught());
  for (const auto& [name, sees] : trial.others) EXPECT_FALSE(sees) << name;
  EXPECT_EQ(trial.reason(), "no value is another where the fault is");
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
  caught.verdict = {.mode = "step", .step = 2}, caught.others = {{"loss curve", true}};
  survivor.others = {{"loss curve", false}};
  same.is_equivalent = true;
  for (const auto& trial : {caught, survivor, same}) score.add(trial, "text");
  EXPECT_EQ(score.all.mutants, 3);
  EXPECT_EQ(score.all.that_count(), 2);
  EXPECT_EQ(score.all.caught, 1);
  EXPECT_EQ(score.classes.at("M5").equivalent, 1);
  EXPECT_EQ(score.others.at("loss curve"), 1);
  EXPECT_EQ(score.survivors().size(), 1u);
  EXPECT_EQ(score.misnamed().size(), 1u);
  EXPECT_EQ(score.at_step.at("2"), 1);
  EXPECT_EQ(score.trials.size(), 3u);
  EXPECT_EQ(score.equivalents().size(), 1u);
}

TEST(MutationScore, SaysWhatAFullRunMisses) {
  MutationScore score;
  Trial caught{.mutant = {.of_class = "M4"}, .verdict = {.mode = "step", .step = 1, .is_named = true}};
  for (int i = 0; i < 100; ++i) score.add(caught, "text");
  EXPECT_THAT(score.missed_targets(), ::testing::IsEmpty());
  for (int i = 0; i < 2; ++i) score.add({.mutant = {.of_class = "M4"}}, "text");
  EXPECT_THAT(score.missed_targets(), ::testing::ElementsAre("caught: 100 of 102, below 99 %"));
  score.add({.mutant = {.of_class = "M5"}, .is_equivalent = true}, "text");
  score.clean.alarms = 1;
  EXPECT_THAT(score.missed_targets(),
              ::testing::ElementsAre("caught: 100 of 102, below 99 %", "M5 has 0 mutants that differ, fewer than 15",
                                     "1 false alarms"));
  caught.verdict.is_named = false;
  for (int i = 0; i < 100; ++i) score.add(caught, "text");
  EXPECT_THAT(score.missed_targets(), ::testing::Contains("named: 100 of 200, below 95 %"));
}

}  // namespace
}  // namespace lockstep::trainer
