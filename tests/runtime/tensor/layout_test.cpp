#include "runtime/tensor/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"

namespace lockstep {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

RC_GTEST_PROP(Layout, ParseIsTheInverseOfText, ()) {
  const auto axes = *testing::mesh_axes(3, 12);
  const auto world = testing::simulated_world(axes);
  const auto& mesh = world->mesh(axes);
  const auto layout = testing::layout(mesh, 3, true);
  RC_ASSERT(Layout::parse(mesh, layout.text()) == layout);
}

RC_GTEST_PROP(Layout, CutsAreDisjointAndCoverTheDimension, ()) {
  const auto axes = *testing::mesh_axes(3, 12);
  const auto world = testing::simulated_world(axes);
  const auto& mesh = world->mesh(axes);
  const auto layout = testing::layout(mesh, 1, false);
  const auto size = *rc::gen::inRange<int64_t>(0, 20);
  std::vector<int> owners(static_cast<size_t>(size), 0);
  for (const int rank : mesh.ranks()) {
    const auto range = layout.cut(rank, 0, size);
    for (int64_t i = 0; i < range.length; ++i) ++owners[static_cast<size_t>(range.start + i)];
  }
  int copies = mesh.rank_count();
  for (const int axis : layout.cutters(0)) copies /= static_cast<int>(mesh.axis_size(axis));
  RC_ASSERT(std::all_of(owners.begin(), owners.end(), [&](int n) { return n == copies; }));
}

TEST(Layout, CutsInUnitsAndInTheOrderOfDepths) {
  const auto world = testing::simulated_world({{"dp", 2}, {"tp", 2}});
  const auto& mesh = world->mesh("dp=2,tp=2");
  const auto layout = Layout::parse(mesh, "[dp=S(0)@1, tp=S(0:4)@0]");
  // tp first, in units of 4 of 12: 8 + 4; then dp halves each.
  EXPECT_EQ(layout.cut(0, 0, 12), (Range{0, 4}));
  EXPECT_EQ(layout.cut(2, 0, 12), (Range{4, 4}));
  EXPECT_EQ(layout.cut(1, 0, 12), (Range{8, 2}));
  EXPECT_EQ(layout.cut(3, 0, 12), (Range{10, 2}));
}

TEST(Layout, TellsWhatIsWrongWithAText) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  EXPECT_EQ(message_of([&] { Layout::parse(mesh, "[dp=R]"); }),
            "layout '[dp=R]': mesh tp=2 has no axis 'dp' at '=R]'; expected for example [dp_shard=S(0), tp=P(sum)]");
  EXPECT_EQ(message_of([&] { Layout::parse(mesh, "[tp=S(x)]"); }),
            "layout '[tp=S(x)]': expected a number at ')]'; expected for example [dp_shard=S(0), tp=P(sum)]");
  EXPECT_EQ(message_of([&] { Layout::parse(mesh, "[tp=S(0)@1]"); }),
            "the axes that cut one dimension should have depths 0, 1, ... (mesh tp=2)");
}

TEST(Mesh, RefusesWhatDoesNotFitTheWorld) {
  const auto world = testing::simulated_world({{"tp", 2}});
  EXPECT_EQ(message_of([&] { world->mesh("tp=3"); }), "mesh tp=3 needs 3 ranks, there are 2");
  EXPECT_THROW(world->mesh("tp=2,tp=1"), BadInput);
}

TEST(Mesh, GroupsDifferInOneCoordinate) {
  const auto world = testing::simulated_world({{"dp", 2}, {"tp", 3}});
  const auto& mesh = world->mesh("dp=2,tp=3");
  EXPECT_EQ(mesh.group(4, 0), (RankGroup{1, 4}));
  EXPECT_EQ(mesh.group(4, 1), (RankGroup{3, 4, 5}));
  EXPECT_EQ(mesh.coordinate(4, 1), 1);
}

}  // namespace
}  // namespace lockstep
