// A block's parameters travel while the block before computes: the same bits as one gather behind the other, one gather
// under way at most, and none where the next cannot be known.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <thread>

#include "core/error.h"
#include "fuzz/trials/streams.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transport/device/device_transport.h"
#include "runtime/transport/wrapper.h"
#include "tests/support/host_link.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

/// Counts the collectives that a rank has posted to a peer and not yet heard of from it.
class OutstandingCount final : public TransportWrapper {
 public:
  using TransportWrapper::TransportWrapper;

  void post(Message message) override {
    most = std::max(most, ++outstanding_[message.destination]);
    inner_->post(std::move(message));
  }
  bool receive(int source, int destination, std::span<const MutableSpan> parts) override {
    const bool done = inner_->receive(source, destination, parts);
    if (done) --outstanding_[source];
    return done;
  }

  int most = 0;

 private:
  std::map<int, int> outstanding_;
};

struct Outcome {
  std::string digest;
  double gather_bytes = 0;
  int outstanding = 0;  ///< the most collectives that were under way
};

struct Trial {
  const char* mesh;
  const char* recompute = "none";
  const char* reshard = "default";
  const char* dtype = "float32";
  bool is_native = false;
};

std::unique_ptr<models::Model> three_blocks() {
  auto options = testing::small_llama_options();
  options.layers = 3;
  options.dropout = 0.1;
  return std::make_unique<models::Llama>(options);
}

Outcome train_rank(const Trial& trial, std::vector<int> local_ranks, const std::shared_ptr<Transport>& inner,
                   bool overlap) {
  auto job = trial.is_native ? testing::native_job() : testing::small_job();
  job.training.local_batch_size = 2;  // with accumulation
  job.training.mixed_precision_param = trial.dtype;
  job.activation_checkpoint.mode = trial.recompute;
  job.parallelism.fsdp_reshard_after_forward = trial.reshard;
  const auto counted = inner ? std::make_shared<OutstandingCount>(inner) : nullptr;
  TrainingRun::Options options;
  options.mesh = parse_mesh(trial.mesh);
  options.local_ranks = std::move(local_ranks);
  options.transport = counted;
  options.overlap = overlap;
  options.make_model = three_blocks;
  TrainingRun run(job, options);
  for (int64_t step = 1; step <= 2; ++step) run.step(step, testing::batch_for(job, step), 1e-2);
  const double bytes = run.world().traffic().on("dp_shard", CollectiveKind::kAllGather).bytes;
  return {state_digest(run.state()).text(), bytes, counted ? counted->most : 0};
}

using Transports = std::vector<std::shared_ptr<Transport>>;

Transports streams_of(const Trial& trial) {
  const int ranks = static_cast<int>(parse_mesh(trial.mesh).ranks());
  const auto streams = testing::connected_transports(ranks, testing::StreamKind::kMemory, std::chrono::seconds{60});
  return {streams.begin(), streams.end()};
}

/// One thread per rank.
std::vector<Outcome> train_ranks(const Trial& trial, bool overlap, const Transports& transports) {
  std::vector<std::future<Outcome>> futures;
  for (size_t rank = 0; rank < transports.size(); ++rank)
    futures.push_back(std::async(std::launch::async, train_rank, trial, std::vector{static_cast<int>(rank)},
                                 transports[rank], overlap));
  std::vector<Outcome> outcomes;
  for (auto& future : futures) outcomes.push_back(future.get());
  return outcomes;
}

TEST(OverlappedTraining, HasTheBitsAndTheTrafficOfOneGatherBehindTheOther) {
  const Trial trials[] = {{"dp_shard=2"},
                          {"dp_shard=2,tp=2"},
                          {"dp_shard=3", "full", "default", "float32", true},
                          {"dp_shard=2", "selective", "never"},
                          {"dp_replicate=2,dp_shard=2", "none", "default", "bfloat16"}};
  for (const auto& trial : trials) {
    const auto together = train_rank(trial, {}, nullptr, true);
    const auto overlapped = train_ranks(trial, true, streams_of(trial));
    const auto waiting = train_ranks(trial, false, streams_of(trial));
    for (size_t rank = 0; rank < overlapped.size(); ++rank) {
      EXPECT_EQ(overlapped[rank].digest, together.digest) << trial.mesh << " rank " << rank;
      EXPECT_EQ(waiting[rank].digest, together.digest) << trial.mesh << " rank " << rank;
      EXPECT_EQ(overlapped[rank].gather_bytes, waiting[rank].gather_bytes) << trial.mesh << " rank " << rank;
      EXPECT_GT(overlapped[rank].gather_bytes, 0) << trial.mesh;
      EXPECT_EQ(overlapped[rank].outstanding, 2) << trial.mesh << " rank " << rank;
      EXPECT_EQ(waiting[rank].outstanding, 1) << trial.mesh << " rank " << rank;
    }
  }
}

/// Without parameters that are cut nothing is to be gathered.
TEST(OverlappedTraining, HasNothingUnderWayWithoutShards) {
  const Trial trial{"tp=3"};
  for (const auto& outcome : train_ranks(trial, true, streams_of(trial))) EXPECT_EQ(outcome.outstanding, 1);
}

/// What carries the bytes must not matter, here links between devices.
TEST(OverlappedTraining, HasTheSameBitsOverLinksBetweenDevices) {
  for (const Trial& trial : {Trial{"dp_shard=2,tp=2"}, Trial{"dp_shard=3", "full", "default", "float32", true}}) {
    const auto mail = std::make_shared<testing::Mail>();
    auto transports = streams_of(trial);
    std::vector<int> rounds(transports.size());
    for (size_t rank = 0; rank < transports.size(); ++rank)
      transports[rank] = std::make_shared<DeviceTransport>(
          transports[rank], std::make_unique<testing::HostLink>(mail, static_cast<int>(rank), rounds[rank]),
          std::chrono::seconds{20});
    const auto together = train_rank(trial, {}, nullptr, true);
    for (const auto& outcome : train_ranks(trial, true, transports)) EXPECT_EQ(outcome.digest, together.digest);
    EXPECT_GT(rounds[0], 50);
  }
}

/// Two parameters that are asked for in turns, and in between written, replaced by others, or left out.
void ask_in_turns(World& world) {
  const auto& mesh = world.mesh("dp_shard=2");
  const auto cut = Layout::parse(mesh, "[dp_shard=S(0)]");
  const GatherRecipe recipe{{Layout::replicated(mesh)}, c10::kFloat, 0};
  auto first = distribute(at::arange(5).to(c10::kFloat), cut), second = distribute(at::arange(9).to(c10::kFloat), cut);
  const auto other = distribute(at::arange(9).to(c10::kFloat), cut);
  GatherOrder order;
  const auto expect = [&](const at::Tensor& parameter, const char* when) {
    const auto gathered = gather(order.gather({parameter}, recipe)[0]);
    LOCKSTEP_CHECK(at::equal(gathered, gather(parameter)), "{}", when);
  };
  for (int microbatch = 0; microbatch < 2; ++microbatch) {
    order.restart();
    for (const auto& parameter : {first, second}) expect(parameter, "in turns");
  }
  order.restart();
  expect(first, "before the write");
  second.add_(100);
  expect(second, "written while under way");
  order.restart();
  expect(first, "before another");
  expect(other, "another parameter");
  order.restart();
  expect(first, "the next is left out");
  order.restart();
  for (const auto& parameter : {other, second, first}) expect(parameter, "another order");
}

TEST(GatherOrder, GivesTheParametersAsTheyAreWhateverIsAskedFor) {
  auto transports = testing::connected_transports(2, testing::StreamKind::kSocket, std::chrono::seconds{20});
  std::string problems[2];
  const auto run = [&](int rank) {
    World world({.rank_count = 2, .local_ranks = {rank}, .transport = transports[static_cast<size_t>(rank)]});
    problems[rank] = [&] {
      try {
        ask_in_turns(world);
        return std::string();
      } catch (const std::exception& error) {
        return std::string(error.what());
      }
    }();
  };
  std::thread one(run, 0), other(run, 1);  // threads of their own: no op has run on them
  one.join();
  other.join();
  EXPECT_EQ(problems[0], "");
  EXPECT_EQ(problems[1], "");
}

}  // namespace
}  // namespace lockstep::trainer
