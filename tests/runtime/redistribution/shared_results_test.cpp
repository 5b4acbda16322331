// What members of a group receive alike is made once where nobody watches: the same values as for those who do, and
// nobody's writes reach another.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::testing {
namespace {

const Shards& shards_of(const at::Tensor& tensor) { return sharded(tensor).shards()->local_tensors(); }

Shards copies_of(const at::Tensor& tensor) {
  Shards copies;
  for (const auto& shard : shards_of(tensor)) copies.push_back(shard.clone());
  return copies;
}

bool same_shards(const Shards& left, const Shards& right) {
  return std::ranges::equal(left, right, [](const auto& a, const auto& b) { return same_bits(a, b); });
}

/// What a move makes of the shards, and what a write to the result leaves in it and in the source.
struct Moved {
  Shards result, written, source;
  bool operator==(const Moved& other) const {
    return same_shards(result, other.result) && same_shards(written, other.written) &&
           same_shards(source, other.source);
  }
};

struct AnyMove {
  std::vector<MeshAxis> axes;
  std::vector<int64_t> sizes;
  c10::ScalarType dtype;
  std::string source, target;

  Moved run(bool watched, bool as_messages = false) const {
    const auto world = simulated_world(axes, {.as_messages = as_messages});
    const auto& mesh = world->mesh(axes);
    Observer nobody;
    std::optional<ObserverScope> scope;
    if (watched) scope.emplace(world->observers(), nobody);
    const auto target_layout = Layout::parse(mesh, target);
    const auto before = scatter(exact_tensor(sizes, dtype), Layout::parse(mesh, source));
    auto moved = redistribute(before, target_layout);
    Moved outcome{copies_of(moved), {}, {}};
    if (!spec_of(moved).any_partial) moved.add_(1), outcome.written = copies_of(moved);
    outcome.source = copies_of(before);
    return outcome;
  }
};

RC_GTEST_PROP(SharedResults, AreThoseOfWhoWatches, ()) {
  AnyMove move{*mesh_axes(3, 12), *sizes(3, 7), *rc::gen::element(c10::kFloat, c10::kBFloat16, c10::kLong), {}, {}};
  const auto world = simulated_world(move.axes);
  const auto& mesh = world->mesh(move.axes);
  const int dims = static_cast<int>(move.sizes.size());
  move.source = layout(mesh, dims, true).text(), move.target = layout(mesh, dims, true).text();
  RC_LOG() << mesh.text() << " " << move.source << " -> " << move.target;
  RC_ASSERT(move.run(false) == move.run(true));
  RC_ASSERT(move.run(false) == move.run(false, /*as_messages=*/true));
}

/// How many different places in memory the shards have.
size_t places(const at::Tensor& tensor) {
  std::set<const void*> begins;
  for (const auto& shard : shards_of(tensor)) begins.insert(shard.const_data_ptr());
  return begins.size();
}

at::Tensor moved(const Mesh& mesh, std::string_view source, std::string_view target) {
  return redistribute(scatter(exact_tensor({8, 3}), Layout::parse(mesh, source)), Layout::parse(mesh, target));
}

TEST(SharedResults, OfAGatherAndOfASumHaveOnePlaceForEachGroup) {
  const auto world = simulated_world({{"dp_shard", 4}, {"tp", 2}});
  const auto& mesh = world->mesh("dp_shard=4,tp=2");
  EXPECT_EQ(places(moved(mesh, "[dp_shard=S(0), tp=S(1)]", "[tp=S(1)]")), 2);
  EXPECT_EQ(places(moved(mesh, "[dp_shard=P(sum), tp=S(1)]", "[tp=S(1)]")), 2);
  auto gathered = moved(mesh, "[dp_shard=S(0), tp=S(1)]", "[tp=S(1)]");
  gathered.add_(1);
  EXPECT_EQ(places(gathered), 8) << "whoever writes needs bytes of its own";
}

/// World::Options::as_messages: what one rank received serves it alone.
TEST(SharedResults, AreNoneOfMessages) {
  const auto world = simulated_world({{"dp_shard", 4}}, {.as_messages = true});
  const auto& mesh = world->mesh("dp_shard=4");
  EXPECT_EQ(places(moved(mesh, "[dp_shard=S(0)]", "[]")), 4);
  EXPECT_EQ(places(moved(mesh, "[dp_shard=P(sum)]", "[]")), 4);
}

TEST(SharedResults, AreNoneWhereAnObserverChangesWhatARankReceived) {
  struct Changes : Observer {
    void received(const CollectiveEvent&, int rank, int, at::Tensor& payload) override {
      if (rank == 1) payload = at::zeros_like(payload);
    }
  } changes;
  const auto world = simulated_world({{"dp_shard", 4}});
  const ObserverScope scope(world->observers(), changes);
  const auto gathered = moved(world->mesh("dp_shard=4"), "[dp_shard=S(0)]", "[]");
  for (size_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(same_bits(shards_of(gathered)[rank], exact_tensor({8, 3})), rank != 1) << "rank " << rank;
}

TEST(SharedResults, OfAReduceScatterAreRowsOfOneSum) {
  const auto world = simulated_world({{"dp_shard", 4}});
  const auto sum = moved(world->mesh("dp_shard=4"), "[dp_shard=P(sum)]", "[dp_shard=S(0)]");
  const auto& shards = shards_of(sum);
  for (size_t i = 1; i < shards.size(); ++i) EXPECT_TRUE(shards[i].storage().is_alias_of(shards[0].storage()));
  EXPECT_EQ(places(sum), 4);
}

}  // namespace
}  // namespace lockstep::testing
