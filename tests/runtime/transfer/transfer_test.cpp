#include "runtime/transfer/transfer.h"

#include <ATen/Functions.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "core/error.h"
#include "fuzz/trials/streams.h"
#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/whole_mesh.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

/// Different at every index.
at::Tensor numbered(at::IntArrayRef sizes, c10::ScalarType dtype = c10::kFloat) {
  return at::arange(1, c10::multiply_integers(sizes) + 1, at::kLong).view(sizes).to(dtype);
}

World::Options ranks(int count) { return {.rank_count = count}; }

Layout cut(const Mesh& mesh, int dim) {
  return Layout(mesh, Placements(static_cast<size_t>(mesh.axis_count()), Placement::shard(dim)));
}

TEST(Transfer, GivesEachRankWhatTheOtherHad) {
  World world(ranks(12));
  const auto& mesh = world.mesh("pp=3,tp=4");
  for (const auto& [from, to] : {std::pair{0, 1}, {2, 0}, {1, 2}})
    for (const auto dtype : {c10::kFloat, c10::kBFloat16, c10::kLong, c10::kBool, c10::kComplexDouble})
      for (const auto& sizes : std::vector<std::vector<int64_t>>{{8, 3}, {5}, {0, 3}, {1}, {3, 4}}) {
        const auto& source = mesh.submesh("pp", from);
        const auto plain = numbered(sizes, dtype);
        const auto arrived = transfer(distribute(plain, cut(source, 0)), mesh.submesh("pp", to));
        EXPECT_EQ(&layout_of(arrived).mesh(), &mesh.submesh("pp", to));
        EXPECT_EQ(layout_of(arrived).placements(), cut(source, 0).placements());
        EXPECT_TRUE(at::equal(gather(arrived), plain)) << from << to << dtype << at::IntArrayRef(sizes);
      }
  const auto& last = mesh.submesh("pp", 2);
  const auto number = at::scalar_tensor(2.5);
  EXPECT_TRUE(at::equal(gather(transfer(distribute(number, Layout::replicated(last)), mesh.submesh("pp", 0))), number));
}

TEST(Transfer, HasBytesOfItsOwn) {
  World world(ranks(2));
  const auto& mesh = world.mesh("pp=2");
  const auto source = distribute(numbered({4}), Layout::replicated(mesh.submesh("pp", 0)));
  const auto arrived = transfer(source, mesh.submesh("pp", 1));
  at::Tensor(arrived).add_(1);
  EXPECT_TRUE(at::equal(gather(source), numbered({4})));
  at::Tensor(source).mul_(3);
  EXPECT_TRUE(at::equal(gather(arrived), numbered({4}) + 1));
}

TEST(Transfer, TakesTheGradientBack) {
  World world(ranks(4));
  const auto& mesh = world.mesh("pp=2,tp=2");
  const auto x = distribute(numbered({6}), cut(mesh.submesh("pp", 0), 0)).requires_grad_();
  const auto arrived = transfer(x, mesh.submesh("pp", 1));
  at::sum(arrived * arrived).backward();
  EXPECT_EQ(&layout_of(x.grad()).mesh(), &mesh.submesh("pp", 0));
  EXPECT_EQ(layout_of(x.grad()).placements(), layout_of(x).placements());
  EXPECT_TRUE(at::equal(gather(x.grad()), 2 * numbered({6})));
}

TEST(Transfer, OfWhatIsNoPartOfTheSameMeshIsRefused) {
  World world(ranks(8));
  const auto& mesh = world.mesh("pp=2,dp=2,tp=2");
  const auto& first = mesh.submesh("pp", 0);
  const auto x = distribute(numbered({4}), Layout::replicated(first));
  const auto refusal = [&](const at::Tensor& tensor, const Mesh& to) {
    return message_of<BadInput>([&] { transfer(tensor, to); });
  };
  const char* expected = "they should be submeshes of one mesh that differ in the coordinate of one axis";
  EXPECT_THAT(refusal(x, first), HasSubstr(expected));
  EXPECT_THAT(refusal(x, mesh), HasSubstr(expected));
  EXPECT_THAT(refusal(x, mesh.submesh("tp", 0)), HasSubstr(expected));
  EXPECT_THAT(refusal(x, first.submesh("tp", 1)), HasSubstr(expected));
  EXPECT_THAT(refusal(x, world.mesh("pp=4,tp=2").submesh("pp", 1)), HasSubstr(expected));
  EXPECT_THAT(refusal(numbered({4}), first), HasSubstr("takes a sharded tensor"));
  const auto sum = distribute(numbered({4}), Layout(first, {Placement::partial(), Placement::replicate()}));
  EXPECT_THAT(refusal(sum, mesh.submesh("pp", 1)), HasSubstr("an unfinished sum; redistribute() it first"));
}

/// Both ends of each, and what arrives.
struct Heard final : Observer {
  void before_collective(const CollectiveEvent& event) override {
    text += fmt::format("{} {} {} {}; ", to_text(event.kind), event.mesh.text(),
                        fmt::join(event.mesh.local_ranks(), ","), event.number);
  }
  void received(const CollectiveEvent&, int rank, int source, at::Tensor& payload) override {
    text += fmt::format("{}<{} {}; ", rank, source, payload.numel());
  }
  std::string text;
};

TEST(Transfer, IsObservedAtBothEnds) {
  World world(ranks(4));
  const auto& mesh = world.mesh("pp=2,tp=2");
  const auto x = distribute(numbered({3}), cut(mesh.submesh("pp", 0), 0));
  Heard heard;
  const ObserverScope scope(world.observers(), heard);
  transfer(x, mesh.submesh("pp", 1));
  EXPECT_EQ(heard.text,
            "transfer pp=2,tp=2 at pp=0 to pp=1 0,1 0; transfer pp=2,tp=2 at pp=1 from pp=0 2,3 0; 2<0 2; 3<1 1; ");
  EXPECT_EQ(world.traffic().on("pp", CollectiveKind::kTransfer).count, 1);
  EXPECT_EQ(world.traffic().on("pp", CollectiveKind::kTransfer).bytes, 6) << "of 12 bytes, for each of two ranks";
}

/// Runs `work` of each rank in a World of its own.
template <class Work>
std::vector<std::string> on_each_rank(int count, const Work& work) {
  const auto transports = testing::connected_transports(count, testing::StreamKind::kMemory, std::chrono::seconds{20});
  std::vector<std::future<std::string>> futures;
  for (int rank = 0; rank < count; ++rank)
    futures.push_back(std::async(std::launch::async, [&, rank] {
      auto options = ranks(count);
      options.local_ranks = {rank}, options.transport = transports[static_cast<size_t>(rank)];
      World world(std::move(options));
      try {
        return std::string(work(world));
      } catch (const Error& error) {
        return std::string(error.what());
      }
    }));
  std::vector<std::string> all;
  for (auto& future : futures) all.push_back(future.get());
  return all;
}

/// What comes later may be awaited first, and what is sent is on its way while the sender does something else.
TEST(Transfer, OverMessagesEndsInAnyOrder) {
  const auto found = on_each_rank(4, [](World& world) {
    const auto& mesh = world.mesh("pp=2,tp=2");
    const auto &first = mesh.submesh("pp", 0), &second = mesh.submesh("pp", 1);
    const auto value = [&](int64_t n) { return distribute(numbered({n, 2}) * n, cut(first, 0)); };
    std::vector<PendingTransfer> pending;
    for (const int64_t n : {5, 3, 1000})
      pending.emplace_back(spec_at(spec_of(value(n)), second), first, static_cast<uint64_t>(n));
    for (const int64_t n : {5, 3, 1000}) send(value(n), second, static_cast<uint64_t>(n));
    std::string text;
    for (const size_t p : {2, 0, 1}) {
      const auto arrived = pending[p].finish();
      const int64_t n = spec_of(arrived).sizes[0];
      if (second.local_count() > 0) text += at::equal(gather(arrived), numbered({n, 2}) * n) ? "equal " : "differs ";
      if (second.local_count() == 0) text += fmt::format("{} shards ", sharded(arrived).shards()->whole().size());
    }
    return text;
  });
  EXPECT_THAT(found, ::testing::ElementsAre("0 shards 0 shards 0 shards ", "0 shards 0 shards 0 shards ",
                                            "equal equal equal ", "equal equal equal "));
}

TEST(Transfer, OfSomethingElseThanExpectedIsAnError) {
  const auto found = on_each_rank(2, [](World& world) {
    const auto& mesh = world.mesh("pp=2");
    const auto &first = mesh.submesh("pp", 0), &second = mesh.submesh("pp", 1);
    const auto x = distribute(numbered({4}), Layout::replicated(first));
    if (first.local_count() > 0) send(x, second, 1);
    if (first.local_count() > 0) return "sent";
    PendingTransfer(spec_at(spec_of(x), second), first, 2).finish();
    return "taken";
  });
  EXPECT_EQ(found[0], "sent");
  EXPECT_THAT(found[1], HasSubstr("rank 1 and rank 0 disagree about a collective: purpose (op, sizes, placements)"));
  EXPECT_THAT(found[1], HasSubstr("(transfer on pp)"));
}

TEST(OnWholeMesh, KeepsEveryBit) {
  World world(ranks(6));
  const auto& mesh = world.mesh("pp=3,tp=2");
  const auto odd = at::tensor({-0.0F, std::nanf("7"), -INFINITY, 1e-45F, 3.5F});
  std::vector<at::Tensor> given;
  for (const auto dtype : {c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kChar, c10::kLong})
    given.push_back(
        distribute(dtype == c10::kFloat ? odd : numbered({3}, dtype), Layout::replicated(mesh.submesh("pp", 1))));
  given.push_back(distribute(numbered({2}), Layout::replicated(mesh)));
  world.traffic().clear();
  const auto all = on_whole_mesh(given);
  EXPECT_EQ(world.traffic().on("pp", CollectiveKind::kAllReduce).count, 1);
  for (size_t t = 0; t < all.size(); ++t) {
    EXPECT_EQ(&layout_of(all[t]).mesh(), &mesh);
    EXPECT_EQ(all[t].scalar_type(), given[t].scalar_type());
    const auto expected = gather(given[t]);
    for (const auto& shard : sharded(all[t]).shards()->whole())
      EXPECT_EQ(std::memcmp(shard.const_data_ptr(), expected.const_data_ptr(), expected.nbytes()), 0) << t;
  }
}

TEST(OnWholeMesh, ReachesRanksThatHaveNone) {
  const auto found = on_each_rank(4, [](World& world) {
    const auto& mesh = world.mesh("pp=2,tp=2");
    const auto& second = mesh.submesh("pp", 1);
    const auto x = distribute(numbered({5, 3}), cut(second, 1));
    return at::equal(gather_everywhere(x), numbered({5, 3})) ? "equal" : "differs";
  });
  EXPECT_THAT(found, ::testing::Each("equal"));
}

}  // namespace
}  // namespace lockstep
