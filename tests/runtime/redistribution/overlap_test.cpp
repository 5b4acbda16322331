// Gathers that are under way while other collectives run, between ranks that are threads here: the bits of one process,
// whatever comes in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/streams.h"
#include "runtime/context/observer.h"
#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "tests/support/cases/rank_threads.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::same_bits;
using testing::StreamKind;

using testing::run_ranks;

const std::vector<std::string> kNoProblem{"", ""};

at::Tensor rows_of(const Mesh& mesh, const at::Tensor& tensor) {
  return distribute(tensor, Layout::parse(mesh, "[dp_shard=S(0)]"));
}

/// What an all-reduce of ones gives: two.
void expect_sum(const Mesh& mesh) {
  const auto sum = distribute(at::ones({3, 2}), Layout::parse(mesh, "[dp_shard=P(sum)]"));
  LOCKSTEP_CHECK(same_bits(gather(redistribute(sum, Layout::replicated(mesh))), at::ones({3, 2})));
}

/// Both tensors of the bucket arrive, though later collectives of the same ranks were waited for first.
TEST(Overlap, LaterCollectivesTakeNoOtherMessages) {
  for (const auto kind : {StreamKind::kSocket, StreamKind::kMemory}) {
    const auto problems = run_ranks(2, kind, [](World& world) {
      const auto& mesh = world.mesh("dp_shard=2");
      const auto large = exact_tensor({1001, 257}), small = exact_tensor({3}), other = exact_tensor({7, 5});
      PendingBucket first({rows_of(mesh, large), rows_of(mesh, small)},
                          {Layout::replicated(mesh), Layout::replicated(mesh)});
      PendingBucket second({rows_of(mesh, other)}, {Layout::replicated(mesh)});
      first.start();
      expect_sum(mesh);
      second.start();
      expect_sum(mesh);
      LOCKSTEP_CHECK(same_bits(gather(second.finish()[0]), other));
      const auto both = first.finish();
      LOCKSTEP_CHECK(same_bits(gather(both[0]), large) && same_bits(gather(both[1]), small));
      LOCKSTEP_CHECK(world.part<ExchangesInFlight>().empty());
    });
    EXPECT_EQ(problems, kNoProblem);
  }
}

/// Its messages are taken all the same, so that what follows finds its own.
TEST(Overlap, AGatherThatNobodyFinishesIsNotInTheWay) {
  const auto problems = run_ranks(2, StreamKind::kMemory, [](World& world) {
    const auto& mesh = world.mesh("dp_shard=2");
    {
      PendingBucket dropped({rows_of(mesh, exact_tensor({301, 1001}))}, {Layout::replicated(mesh)});
      dropped.start();
    }
    expect_sum(mesh);
    LOCKSTEP_CHECK(world.part<ExchangesInFlight>().empty());
  });
  EXPECT_EQ(problems, kNoProblem);
}

/// Messages move when ops run: nothing is left to wait for.
TEST(Overlap, OpsLetMessagesMove) {
  const auto problems = run_ranks(2, StreamKind::kMemory, [](World& world) {
    const auto& mesh = world.mesh("dp_shard=2");
    PendingBucket bucket({rows_of(mesh, exact_tensor({301, 1001}))}, {Layout::replicated(mesh)});
    bucket.start();
    LOCKSTEP_CHECK(!world.part<ExchangesInFlight>().empty() || mesh.local_ranks()[0] == 1);
    auto computed = distribute(at::ones({2}), Layout::replicated(mesh));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!world.part<ExchangesInFlight>().empty() && std::chrono::steady_clock::now() < end)
      computed = computed + computed;
    LOCKSTEP_CHECK(world.part<ExchangesInFlight>().empty());
    LOCKSTEP_CHECK(same_bits(gather(bucket.finish()[0]), exact_tensor({301, 1001})));
  });
  EXPECT_EQ(problems, kNoProblem);
}

/// An observer sees one collective behind the other.
TEST(Overlap, IsOffUnderObservers) {
  const auto problems = run_ranks(2, StreamKind::kMemory, [](World& world) {
    Observer nobody;
    world.observers().add(&nobody);
    const auto& mesh = world.mesh("dp_shard=2");
    PendingBucket bucket({rows_of(mesh, exact_tensor({9, 5}))}, {Layout::replicated(mesh)});
    bucket.start();
    LOCKSTEP_CHECK(world.part<ExchangesInFlight>().empty());
    LOCKSTEP_CHECK_EQ(world.traffic().total(CollectiveKind::kAllGather).count, 0);
    LOCKSTEP_CHECK(same_bits(gather(bucket.finish()[0]), exact_tensor({9, 5})));
  });
  EXPECT_EQ(problems, kNoProblem);
}

/// The error names the collective that cannot be ended, not the one that was waited for.
TEST(Overlap, APeerThatIsGoneIsNamedWithTheGather) {
  const auto problems = run_ranks(2, StreamKind::kSocket, [](World& world) {
    const auto& mesh = world.mesh("dp_shard=2");
    if (mesh.local_ranks()[0] == 1) return;
    PendingBucket bucket({rows_of(mesh, exact_tensor({9, 5}))}, {Layout::replicated(mesh)});
    bucket.start();
    expect_sum(mesh);
  });
  EXPECT_THAT(problems[0], ::testing::HasSubstr("rank 0 waits for rank 1, whose connection is gone"));
  EXPECT_THAT(problems[0], ::testing::HasSubstr("in collective 0 (all_gather on dp_shard)"));
}

TEST(Overlap, RanksThatGatherAndReduceDisagree) {
  const auto problems = run_ranks(2, StreamKind::kSocket, [](World& world) {
    const auto& mesh = world.mesh("dp_shard=2");
    PendingBucket bucket({rows_of(mesh, exact_tensor({9, 5}))}, {Layout::replicated(mesh)});
    if (mesh.local_ranks()[0] == 1) bucket.start();
    expect_sum(mesh);
    bucket.finish();
  });
  EXPECT_THAT(problems[0],
              ::testing::HasSubstr("rank 0 and rank 1 disagree about a collective: kind all_reduce != all_gather"));
  EXPECT_THAT(problems[1], ::testing::HasSubstr("kind all_gather != all_reduce, bytes 100 != 24"));
}

/// Tensors of a program: each is gathered from a layout, or moved at once to another, in an order of its own.
struct Errand {
  std::vector<int64_t> shape;
  std::string source, target;  ///< Layout::text()
  bool departs = false;
};

/// Every errand departs, or is done at once; those under way are finished at the end, the last first.
void run_errands(World& world, const std::vector<MeshAxis>& axes, const std::vector<Errand>& errands) {
  const auto& mesh = world.mesh(axes);
  std::vector<std::pair<PendingBucket, at::Tensor>> under_way;
  for (const auto& errand : errands) {
    const auto global = exact_tensor(errand.shape);
    PendingBucket bucket({testing::scatter(global, Layout::parse(mesh, errand.source))},
                         {Layout::parse(mesh, errand.target)});
    if (!errand.departs) {
      LOCKSTEP_CHECK(same_bits(gather(bucket.finish()[0]), global), "{}", errand.source);
      continue;
    }
    bucket.start();
    under_way.emplace_back(std::move(bucket), global);
  }
  for (; !under_way.empty(); under_way.pop_back())
    LOCKSTEP_CHECK(same_bits(gather(under_way.back().first.finish()[0]), under_way.back().second));
}

RC_GTEST_PROP(Overlap, GivesTheBitsOfOneProcess, ()) {
  const auto axes = *testing::mesh_axes(2, 4);
  const auto planning = testing::simulated_world(axes);
  const auto& mesh = planning->mesh(axes);
  std::vector<Errand> errands(*rc::gen::inRange<size_t>(1, 7));
  for (auto& errand : errands) {
    errand.shape = *testing::sizes(2, 6);
    if (!errand.shape.empty()) errand.shape.back() *= *rc::gen::element<int64_t>(1, 50, 40'000);
    const int dims = static_cast<int>(errand.shape.size());
    errand.source = testing::layout(mesh, dims, true).text();
    errand.target = testing::layout(mesh, dims, true).text();
    errand.departs = *rc::gen::arbitrary<bool>();
    RC_LOG() << (errand.departs ? "later " : "now ") << errand.source << " -> " << errand.target << " of "
             << c10::str(errand.shape) << "\n";
  }
  const auto kind = *rc::gen::element(StreamKind::kSocket, StreamKind::kMemory);
  for (const auto& problem :
       run_ranks(mesh.rank_count(), kind, [&](World& world) { run_errands(world, axes, errands); }))
    RC_ASSERT(problem == "");
}

}  // namespace
}  // namespace lockstep
