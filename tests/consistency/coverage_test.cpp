// What a run has come to, of small programs whose coverage is known.
#include "consistency/coverage.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

/// A product of a matrix whose rows are cut.
Coverage of_product(int64_t rows, const char* left, const char* right, const char* wanted) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh({{"tp", 2}});
  const auto a = distribute(testing::exact_tensor({rows, 4}), Layout::parse(mesh, left));
  const auto b = distribute(testing::exact_tensor({4, 6}), Layout::parse(mesh, right));
  CoverageObserver observer;
  const ObserverScope scope(world->observers(), observer);
  redistribute(at::mm(a, b), Layout::parse(mesh, wanted));
  return observer.coverage();
}

TEST(Coverage, OfARowIsTheCandidateThatItRanIn) {
  const auto coverage = of_product(8, "[tp=S(0)]", "[tp=R]", "[tp=S(0)]");
  EXPECT_THAT(coverage.rows, ElementsAre("mm"));
  const std::map<std::string, bool> expected{{"S(0),R -> S(0)", true},  {"S(1),S(0) -> P", false},
                                             {"R,S(1) -> S(1)", false}, {"R,R -> R", false},
                                             {"P,R -> P", false},       {"R,P -> P", false}};
  EXPECT_EQ(coverage.candidates.at("mm"), expected);
  EXPECT_EQ(coverage.candidate_count(), 6);
  EXPECT_EQ(coverage.reached_candidates(), 1);
  EXPECT_THAT(coverage.moves, ElementsAre());
}

TEST(Coverage, OfASumIsTheMoveThatFinishesIt) {
  const auto coverage = of_product(8, "[tp=S(1)]", "[tp=S(0)]", "[tp=R]");
  EXPECT_TRUE(coverage.candidates.at("mm").at("S(1),S(0) -> P"));
  EXPECT_THAT(coverage.moves, ElementsAre("P -> R by all_reduce"));
  EXPECT_THAT(coverage.collectives, ElementsAre("all_reduce"));
}

TEST(Coverage, UnevenShardsAreAnotherPath) {
  EXPECT_THAT(of_product(8, "[tp=S(0)]", "[tp=R]", "[tp=R]").moves, ElementsAre("S -> R by all_gather"));
  EXPECT_THAT(of_product(7, "[tp=S(0)]", "[tp=R]", "[tp=R]").moves, ElementsAre("S -> R by all_gather, uneven shards"));
}

TEST(Coverage, WhatReadsSizesAloneHasNoCandidates) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto sum = distribute(testing::exact_tensor({4, 4}), Layout::parse(world->mesh({{"tp", 2}}), "[tp=P(sum)]"));
  CoverageObserver observer;
  const ObserverScope scope(world->observers(), observer);
  at::zeros_like(sum);
  EXPECT_THAT(observer.coverage().rows, ElementsAre("zeros_like"));
  EXPECT_EQ(observer.coverage().candidate_count(), 0);
}

TEST(Coverage, CollectivesTellOverHowManyRanksTheyWent) {
  const auto coverage = of_product(8, "[tp=S(0)]", "[tp=R]", "[tp=R]");
  const std::map<std::string, std::set<int64_t>> expected{{"all_gather", {2}}};
  EXPECT_EQ(coverage.group_sizes, expected);
}

TEST(Coverage, AddsUp) {
  auto both = of_product(8, "[tp=S(0)]", "[tp=R]", "[tp=R]");
  both.add(of_product(8, "[tp=S(1)]", "[tp=S(0)]", "[tp=S(0)]"));
  EXPECT_THAT(both.moves, UnorderedElementsAre("S -> R by all_gather", "P -> S by reduce_scatter"));
  EXPECT_THAT(both.collectives, UnorderedElementsAre("all_gather", "reduce_scatter"));
  EXPECT_EQ(both.reached_candidates(), 2);
  EXPECT_THAT(missing(all_collectives(), both.collectives), ElementsAre("all_reduce", "all_to_all", "transfer"));
  EXPECT_THAT(missing(all_rows(), both.rows), Not(Contains("mm")));
  EXPECT_EQ(missing(all_rows(), both.rows).size() + 1, all_rows().size());
}

TEST(CoverageGaps, AreNamesWhereTheyAreFewAndElseCounts) {
  const auto coverage = of_product(8, "[tp=S(0)]", "[tp=R]", "[tp=S(0)]");
  const auto candidates = gaps_of_candidates(coverage);
  EXPECT_TRUE(candidates.are_names);
  EXPECT_THAT(candidates.items, UnorderedElementsAre("mm S(1),S(0) -> P", "mm R,S(1) -> S(1)", "mm R,R -> R",
                                                     "mm P,R -> P", "mm R,P -> P"));
  const auto rows = gaps_of_rows(coverage);
  EXPECT_FALSE(rows.are_names);
  EXPECT_THAT(rows.items, Contains(::testing::StartsWith("matmul ")));
  EXPECT_THAT(rows.items, Not(Contains("mul.Tensor")));
}

TEST(CoverageGaps, OfAFullTableAreTheLast12Names) {
  Coverage coverage;
  for (const auto& row : all_rows()) coverage.rows.insert(row);
  EXPECT_THAT(gaps_of_rows(coverage).items, ElementsAre());
  coverage.rows.erase("mm");
  EXPECT_THAT(gaps_of_rows(coverage).items, ElementsAre("mm"));
  while (all_rows().size() - coverage.rows.size() < kMostGapNames) coverage.rows.erase(coverage.rows.begin());
  EXPECT_EQ(gaps_of_rows(coverage).items.size(), kMostGapNames);
  EXPECT_TRUE(gaps_of_rows(coverage).are_names);
  coverage.rows.erase(coverage.rows.begin());
  EXPECT_FALSE(gaps_of_rows(coverage).are_names);
}

TEST(Coverage, KnowsAllMoves) {
  EXPECT_THAT(all_moves(),
              UnorderedElementsAre("P -> R by all_reduce", "P -> S by reduce_scatter",
                                   "P -> S by reduce_scatter, uneven shards", "R -> P without communication",
                                   "R -> S without communication", "R -> S without communication, uneven shards",
                                   "S -> R by all_gather", "S -> R by all_gather, uneven shards",
                                   "S -> S by all_to_all", "S -> S by all_to_all, uneven shards"));
}

}  // namespace
}  // namespace lockstep
