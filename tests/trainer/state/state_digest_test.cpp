#include "trainer/state/state_digest.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/digest/place_digest.h"
#include "core/error.h"
#include "fuzz/trials/streams.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/state/state_checkpoint.h"

namespace lockstep::trainer {
namespace {

TrainingRun make_run(const char* mesh, std::vector<int> local_ranks = {}, std::shared_ptr<Transport> transport = {}) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = testing::small_llama;
  options.local_ranks = std::move(local_ranks);
  options.transport = std::move(transport);
  return {testing::small_job(), options};
}

/// Part by part from the whole tensors.
Digest expected_digest(const TrainingState& state) {
  PlaceDigest digest;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      const auto whole = gather(tensor).contiguous();
      for (size_t part = 0; part < entry.division.parts().size(); ++part) {
        std::vector<at::Tensor> rows;
        if (whole.dim() == 0) rows.push_back(whole);
        for (const auto& run :
             whole.dim() == 0 ? std::vector<models::PartRows>{} : entry.division.rows_of(part, 0, whole.size(0)))
          rows.push_back(whole.narrow(0, run.row, run.count));
        const auto plain = rows.size() == 1 ? rows[0].contiguous() : at::cat(rows);
        digest.add(PlaceDigest::key(prefix + entry.division.parts()[part].name), 0, bytes_of(plain));
      }
    }
  return digest.result();
}

TEST(StateDigest, IsThatOfTheStoredTensorsOnEveryMesh) {
  const auto one = make_run("one device");
  const auto expected = expected_digest(one.state());
  EXPECT_NE(expected, Digest{});
  for (const auto* mesh : {"one device", "dp_shard=2", "dp_shard=4", "tp=2", "tp=3", "dp_replicate=2,dp_shard=2",
                           "cp=2", "dp_replicate=2,dp_shard=2,tp=3"}) {
    const auto run = make_run(mesh);
    EXPECT_EQ(state_digest(run.state()), expected) << mesh;
    EXPECT_EQ(expected_digest(run.state()), expected) << mesh;
  }
}

TEST(StateDigest, IsTheSameInManyProcesses) {
  const auto expected = state_digest(make_run("one device").state());
  for (const auto* mesh : {"dp_shard=3", "dp_replicate=3", "tp=3"}) {
    const auto transports = testing::connected_transports(3, testing::StreamKind::kMemory, std::chrono::seconds(60));
    std::vector<std::future<Digest>> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.push_back(std::async(std::launch::async, [&, rank] {
        return state_digest(make_run(mesh, {rank}, transports[static_cast<size_t>(rank)]).state());
      }));
    for (auto& rank : ranks) EXPECT_EQ(rank.get(), expected) << mesh;
  }
}

/// One element of one shard of one tensor, in its lowest bit, of the copy that counts.
TEST(StateDigest, AnyChangeShows) {
  const at::NoGradGuard no_grad;
  auto run = make_run("dp_replicate=2,tp=3");
  const auto before = state_digest(run.state());
  int64_t shards = 0, digests = 0;
  for (auto& entry : run.state())
    for (auto& [prefix, tensor] : entry.tensors())
      for (const auto& shard : sharded(tensor).shards()->whole()) {
        if (shard.numel() == 0) continue;
        auto last = shard.view({-1}).narrow(0, shard.numel() - 1, 1).view(at::kInt);
        last.bitwise_xor_(1);
        digests += state_digest(run.state()) != before;
        last.bitwise_xor_(1);
        ++shards;
      }
  EXPECT_GT(digests, shards / 6);  // tensors cut by tp count three of six shards, others one
  EXPECT_LT(digests, shards);
  EXPECT_EQ(state_digest(run.state()), before);
}

TEST(StateDigest, OfAnotherStateThanTheSavedOneIsRefused) {
  const TemporaryFolder folder;
  auto run = make_run("dp_shard=2");
  save_state(folder.file("c"), {1, 2, "", 1, {"a run", "", {}}}, run.state());
  const auto path = folder.file("c/index.json");
  auto index = parse_index(file_content(path), path);
  EXPECT_EQ(index.metadata.state, state_digest(run.state()).text());
  for (const auto* other : {"00112233445566778899aabbccddeeff", ""}) {
    index.metadata.state = other;
    folder.write("c/index.json", index_text(index));
    try {
      load_state(folder.file("c"), run.state());
      ADD_FAILURE() << "was loaded";
    } catch (const FileError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("it was saved or loaded wrongly"));
    }
  }
}

}  // namespace
}  // namespace lockstep::trainer
