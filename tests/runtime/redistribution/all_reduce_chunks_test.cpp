// An all-reduce over messages in two rounds cuts what it sends evenly: no rank receives more than twice its share.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <map>

#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep::testing {
namespace {

/// Bytes that each rank gets from others.
class Received final : public Observer {
 public:
  void received(const CollectiveEvent&, int rank, int source, at::Tensor& payload) override {
    if (rank != source) bytes[rank] += payload.nbytes();
  }
  std::map<int, size_t> bytes;
};

TEST(AllReduceChunks, AreEven) {
  for (const int ranks : {2, 3, 4})
    for (const int64_t elements : {24, 25, 1, 0}) {
      World world({.rank_count = ranks, .as_messages = true, .one_round_bytes = 0});
      const auto& mesh = world.mesh("tp=" + std::to_string(ranks));
      Shards parts;
      for (int rank = 0; rank < ranks; ++rank) parts.push_back(at::arange(elements, at::kFloat) + rank);
      const auto sum = from_shards(parts, Layout::parse(mesh, "[tp=P(sum)]"), {elements}, at::kFloat);
      Received received;
      const ObserverScope scope(world.observers(), received);
      const auto whole = redistribute(sum, Layout::replicated(mesh));
      EXPECT_TRUE(at::equal(gather(whole), at::arange(elements, at::kFloat) * ranks + ranks * (ranks - 1) / 2));
      const auto chunk = static_cast<size_t>((elements + ranks - 1) / ranks) * sizeof(float);
      if (ranks == 2 && elements > 0) continue;  // whole tensors take no more bytes between two
      for (const auto& [rank, bytes] : received.bytes)
        EXPECT_LE(bytes, 2 * static_cast<size_t>(ranks - 1) * chunk) << elements << " elements, rank " << rank;
      if (elements == 24)
        for (const auto& [rank, bytes] : received.bytes)
          EXPECT_EQ(bytes, 2 * static_cast<size_t>(ranks - 1) * chunk) << "rank " << rank << " of " << ranks;
    }
}

/// Bytes that rank 0 gets, of 24 floats that three ranks add up.
size_t received_with(size_t one_round_bytes) {
  World world({.rank_count = 3, .as_messages = true, .one_round_bytes = one_round_bytes});
  const auto& mesh = world.mesh("tp=3");
  const auto layout = Layout::parse(mesh, "[tp=P(sum)]");
  const auto sum = from_shards({at::ones({24}), at::ones({24}), at::ones({24})}, layout, {24}, at::kFloat);
  Received received;
  const ObserverScope scope(world.observers(), received);
  redistribute(sum, Layout::replicated(mesh));
  return received.bytes[0];
}

/// Small is what takes no more than World::Options says to send whole to all others.
TEST(AllReduceRounds, AreOneForWhatIsSmall) {
  constexpr size_t kWholeToBoth = 2 * 24 * sizeof(float), kChunks = 2 * 2 * 8 * sizeof(float);
  EXPECT_EQ(received_with(kWholeToBoth), kWholeToBoth);
  EXPECT_EQ(received_with(kWholeToBoth - 1), kChunks);
}

}  // namespace
}  // namespace lockstep::testing
