// Bytes over a link between devices, headers over streams: any redistribution gives the bits of one process, rounds
// begin in one order on all ranks, and ranks that disagree find out before a byte moves. The devices' part is played by
// host memory.
#include "runtime/transport/device/device_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/device/nccl_link.h"
#include "tests/support/host_link.h"
#include "tests/support/streams.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::HostLink;
using testing::Mail;
using testing::StreamKind;

constexpr std::chrono::seconds kLong{20};

struct RankResult {
  std::string problem;
  int rounds = 0;
};

/// Every rank runs `program` in a thread and a World of its own, whose "devices" are linked.
std::vector<RankResult> run_ranks(int ranks, const std::function<void(World&)>& program) {
  auto streams = testing::connected_transports(ranks, StreamKind::kSocket, kLong);
  const auto mail = std::make_shared<Mail>();
  std::vector<RankResult> results(streams.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto place = static_cast<size_t>(rank);
      try {
        const auto transport = std::make_shared<DeviceTransport>(
            std::move(streams[place]), std::make_unique<HostLink>(mail, rank, results[place].rounds), kLong);
        World world({.rank_count = ranks, .local_ranks = {rank}, .transport = transport});
        program(world);
      } catch (const std::exception& error) {
        results[place].problem = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return results;
}

RC_GTEST_PROP(DeviceTransport, GivesTheBitsOfOneProcess, ()) {
  const auto axes = *testing::mesh_axes(2, 4);
  const auto planning = testing::simulated_world(axes);
  const auto& mesh = planning->mesh(axes);
  const auto shape = *testing::sizes(2, 6);
  const int dims = static_cast<int>(shape.size());
  const auto source = testing::layout(mesh, dims, true).text(), target = testing::layout(mesh, dims, true).text();
  RC_LOG() << mesh.text() << " " << source << " -> " << target << " of " << c10::str(shape);
  const auto results = run_ranks(mesh.rank_count(), [&](World& world) {
    const auto& own = world.mesh(axes);
    const auto global = exact_tensor(shape);
    PendingBucket later({distribute(global, Layout::parse(own, source))}, {Layout::parse(own, target)});
    later.start();
    const auto now = redistribute(distribute(global, Layout::parse(own, source)), Layout::parse(own, target));
    LOCKSTEP_CHECK(testing::same_bits(gather(now), global), "at once");
    LOCKSTEP_CHECK(testing::same_bits(gather(later.finish()[0]), global), "later");
  });
  for (const auto& result : results) RC_ASSERT(result.problem == "");
}

/// A round of each collective, and no bytes beside it.
TEST(DeviceTransport, BeginsARoundPerCollective) {
  const auto results = run_ranks(3, [](World& world) {
    const auto& mesh = world.mesh("tp=3");
    for (const auto* layout : {"[tp=S(0)]", "[tp=S(1)]"})
      redistribute(distribute(exact_tensor({7, 5}), Layout::parse(mesh, layout)), Layout::replicated(mesh));
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.problem, "");
    EXPECT_EQ(result.rounds, 2);
  }
}

/// Moves nothing; notes down with whom rounds were begun.
struct RoundLog final : DeviceLink {
  explicit RoundLog(std::vector<int>& log) : peers(log) {}
  void exchange(std::span<const DeviceSend> sends, std::span<const DeviceReceive>) override {
    for (const auto& send : sends) peers.push_back(send.peer);
    ++ended;
  }
  uint64_t ended_rounds() override { return ended; }
  void abort() override {}
  std::vector<int>& peers;
  std::atomic<uint64_t> ended = 0;
};

/// Else two ranks whose devices take one round after the other might wait for each other.
TEST(DeviceTransport, RoundsBeginInTheOrderOfTheirPosts) {
  const auto streams = testing::connected_transports(3, StreamKind::kSocket, kLong);
  std::vector<int> peers[3];
  std::vector<std::unique_ptr<DeviceTransport>> ranks;
  for (size_t rank = 0; rank < 3; ++rank)
    ranks.push_back(std::make_unique<DeviceTransport>(streams[rank], std::make_unique<RoundLog>(peers[rank]), kLong));
  auto& zero = *ranks[0];
  const auto wait_for_announcement = [&](int source) {
    while (!zero.arrived(source, 0)) zero.progress();
  };
  zero.post(testing::message_of(0, 2, 0, 8));
  zero.post(testing::message_of(0, 1, 1, 8));
  ranks[1]->post(testing::message_of(1, 0, 1, 8));
  wait_for_announcement(1);
  Bytes bytes(8);
  const MutableSpan parts[] = {bytes};
  EXPECT_FALSE(zero.receive(1, 0, parts)) << "the round with rank 2 was posted first";
  EXPECT_THAT(peers[0], ::testing::IsEmpty());
  ranks[2]->post(testing::message_of(2, 0, 0, 8));
  wait_for_announcement(2);
  EXPECT_TRUE(zero.receive(2, 0, parts));
  EXPECT_TRUE(zero.receive(1, 0, parts));
  EXPECT_THAT(peers[0], ::testing::ElementsAre(2, 1));
}

TEST(DeviceTransport, RanksThatDisagreeMoveNoByte) {
  const auto results = run_ranks(2, [](World& world) {
    const auto& mesh = world.mesh("tp=2");
    const bool is_first = mesh.local_ranks()[0] == 0;
    redistribute(distribute(exact_tensor({4, 4}), Layout::parse(mesh, "[tp=P(sum)]")),
                 Layout::parse(mesh, is_first ? "[tp=S(0)]" : "[tp=S(1)]"));
  });
  EXPECT_THAT(results[0].problem,
              ::testing::HasSubstr("rank 0 and rank 1 disagree about a collective: purpose (op, sizes, placements) "));
  EXPECT_THAT(results[1].problem,
              ::testing::HasSubstr("rank 1 and rank 0 disagree about a collective: purpose (op, sizes, placements) "));
  EXPECT_EQ(results[0].rounds + results[1].rounds, 0);
}

TEST(DeviceTransport, RefusesAnnouncementsThatAreNone) {
  const auto streams = testing::connected_transports(2, StreamKind::kMemory, kLong);
  int rounds = 0;
  DeviceTransport transport(streams[0], std::make_unique<HostLink>(std::make_shared<Mail>(), 0, rounds), kLong);
  streams[1]->post(testing::message_of(1, 0, 5, 40));
  const auto what = testing::problem([&] {
    while (!transport.arrived(1, 0)) transport.progress();
  });
  EXPECT_THAT(what, ::testing::HasSubstr("rank 1 announced collective 5"));
  EXPECT_THAT(what, ::testing::HasSubstr("40 bytes for 0 to rank 0, which is no message for a device"));
}

TEST(NcclLink, IsAClearErrorWithoutCuda) {
  if (nccl_unavailable_reason().empty()) GTEST_SKIP() << "built with CUDA";
  const auto streams = testing::connected_transports(2, StreamKind::kMemory, std::chrono::seconds{1});
  try {
    make_nccl_link(*streams[0], 0, 2);
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_EQ(error.what(), "communication between GPUs: " + nccl_unavailable_reason());
  }
}

}  // namespace
}  // namespace lockstep
