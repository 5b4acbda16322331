// Whose value a rank gets where it gets another group's, and what a report of it has to name.
#include "trainer/mutation/planted_fault.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "trainer/mutation/expectation.h"
#include "trainer/mutation/trials/forward_outputs.h"

namespace lockstep::trainer {
namespace {

using lockstep::testing::simulated_world;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RankOfOtherGroup, StandsInTheNextGroupAlongAnotherAxis) {
  const auto world = simulated_world({{"a", 2}, {"b", 3}});
  const auto& mesh = world->mesh("a=2,b=3");
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(rank_of_other_group(mesh, rank, 0), rank / 3 * 3 + (rank + 1) % 3) << "the group of a beside";
    EXPECT_EQ(rank_of_other_group(mesh, rank, 1), (rank + 3) % 6) << "the group of b beside";
  }
  const auto alone = simulated_world({{"a", 2}});
  EXPECT_EQ(rank_of_other_group(alone->mesh("a=2"), 1, 0), 1);
}

/// Remembers what asked for the last move.
struct LastMove final : Observer {
  void after_move(const MoveEvent& event) override { id = event.id; }
  OpId id;
};

/// What a whole matrix, cut by both axes, is on ranks that gather it along one and get the other group's part.
TEST(PlantedFault, OfAnotherGroupGivesItsValue) {
  const auto plain = at::arange(16, at::kFloat).view({4, 4});
  const auto upside_down = at::cat({plain.slice(0, 2), plain.slice(0, 0, 2)}, 0);
  const auto mirrored = at::cat({plain.slice(1, 2), plain.slice(1, 0, 2)}, 1);
  using Case = std::pair<const char*, at::Tensor>;
  for (const auto& [gathered, expected] : {Case{"[a=R, b=S(1)]", mirrored}, {"[a=S(0), b=R]", upside_down}}) {
    const auto world = simulated_world({{"a", 2}, {"b", 2}});
    const auto& mesh = world->mesh("a=2,b=2");
    const auto x = distribute(plain, Layout::parse(mesh, "[a=S(0), b=S(1)]"));
    const auto moved_before = [&, layout = Layout::parse(mesh, gathered)](Observer& observer) {
      RunContext context;
      const RunContext::Use use(context);
      context.begin_microbatch(1, 0);
      const ObserverScope scope(world->observers(), observer);
      return redistribute(x, layout);
    };
    LastMove last;
    moved_before(last);
    Mutant mutant{.change = Change::kOtherGroup};
    mutant.site.kind = Site::Kind::kMove, mutant.site.id = last.id;
    PlantedFault fault(mutant);
    fault.begin_step(1, {}, 0, {});
    const auto wrong = moved_before(fault);
    EXPECT_TRUE(at::equal(gather(wrong), expected)) << gathered;
    EXPECT_GT(fault.changes(), 0);
  }
}

Mutant move_on_rank_1(Site::Kind kind, const char* collective, bool is_partial) {
  Mutant mutant{.setup = {.mesh = "dp_shard=2,tp=2"}, .ranks = {1}};
  mutant.site.kind = kind, mutant.site.collective = collective, mutant.site.axis = "tp";
  mutant.site.is_partial = is_partial;
  return mutant;
}

TEST(Expectation, OfAMoveNamesGroupAndRanksThatCanBeTold) {
  const auto ranks = [](Site::Kind kind, const char* collective, bool is_partial) {
    return expectation_of(move_on_rank_1(kind, collective, is_partial)).ranks;
  };
  EXPECT_THAT(ranks(Site::Kind::kMove, "all_gather", false), ElementsAre(1));
  EXPECT_THAT(ranks(Site::Kind::kPieces, "all_gather", false), ElementsAre(1));
  EXPECT_THAT(ranks(Site::Kind::kPieces, "all_reduce", false), IsEmpty()) << "what one receives others receive from it";
  EXPECT_THAT(ranks(Site::Kind::kMove, "reduce_scatter", true), IsEmpty()) << "a part of a sum";
  EXPECT_THAT(expectation_of(move_on_rank_1(Site::Kind::kMove, "all_gather", false)).group, ElementsAre(0, 1));
}

/// What two ranks' ops give in a phase, times `factor`.
ForwardOutputs outputs_of(Phase phase, double factor) {
  const auto world = simulated_world({{"tp", 2}});
  const auto x = distribute(at::ones({4}), Layout::parse(world->mesh("tp=2"), "[tp=S(0)]"));
  ForwardOutputs outputs;
  const ObserverScope scope(world->observers(), outputs);
  const PhaseScope in(phase);
  const ModuleScope module("m");
  at::mul(x, factor);
  return outputs;
}

TEST(ForwardOutputs, AreOfForwardAlone) {
  const auto right = outputs_of(Phase::kForward, 2);
  EXPECT_FALSE(outputs_of(Phase::kForward, 2).module_differs(right, 1e-3));
  EXPECT_TRUE(outputs_of(Phase::kForward, 3).module_differs(right, 1e-3));
  EXPECT_FALSE(outputs_of(Phase::kBackward, 3).module_differs(outputs_of(Phase::kBackward, 2), 1e-3));
}

}  // namespace
}  // namespace lockstep::trainer
