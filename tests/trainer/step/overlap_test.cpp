// A block's parameters and gradients travel while another block computes: the same bits as one collective behind the
// other, one gather and one reduction of a block under way at most, and no gather where the next cannot be known.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "core/error.h"
#include "fuzz/trials/streams.h"
#include "runtime/local_calls/decomposition.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transport/device/device_transport.h"
#include "runtime/transport/wrapper.h"
#include "tests/support/canonical_models.h"
#include "tests/support/host_link.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

bool is_reduction(const MessageHeader& header) {
  const auto kind = static_cast<CollectiveKind>(header.kind);
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kAllToAll;  // of nodes
}

/// Counts the collectives that a rank has posted to a peer and not yet heard of from it. A message arrives when the
/// rank waits, one for each time that it does, so that reductions under way do not depend on who is faster.
class OutstandingCount final : public TransportWrapper {
 public:
  using TransportWrapper::TransportWrapper;

  void post(Message message) override {
    auto& [underway, last, taken] = peers_[message.destination];
    if (is_reduction(last) && underway.contains(last.collective)) ++reductions_left;
    last = message.header;
    underway.insert(last.collective);
    most = std::max(most, static_cast<int>(underway.size()));
    waits_ = false;
    inner_->post(std::move(message));
  }
  std::optional<MessageHeader> arrived(int source, int destination) override {
    const auto header = waits_ ? inner_->arrived(source, destination) : std::nullopt;
    if (header) peers_[source].taken = header->collective;
    return header;
  }
  void progress() override {
    if (std::exchange(waits_, true)) inner_->progress();
  }
  bool receive(int source, int destination, std::span<const MutableSpan> parts) override {
    const bool done = inner_->receive(source, destination, parts);
    if (done) peers_[source].underway.erase(peers_[source].taken), waits_ = false;
    return done;
  }

  int most = 0;
  int reductions_left = 0;  ///< those that were under way when something else was posted

 private:
  struct Peer {
    std::set<uint64_t> underway;  ///< collectives
    MessageHeader last;           ///< posted
    uint64_t taken = 0;           ///< that arrives
  };
  std::map<int, Peer> peers_;
  bool waits_ = false;
};

struct Outcome {
  std::string digest;
  std::vector<double> traffic;  ///< collectives and bytes, by axis and kind
  int outstanding = 0;          ///< the most collectives that were under way
  int reductions_left = 0;
  Decomposition::Counts in_parts;
};

struct Trial {
  const char* mesh;
  const char* recompute = "none";
  const char* reshard = "default";
  const char* dtype = "float32";
  bool is_native = false;
  int64_t bucket_cap_mb = 25;
  bool in_parts = false;  ///< products, along with the collectives beside them
  const char* schedule = "1F1B";
};

std::unique_ptr<models::Model> three_blocks() {
  auto options = testing::small_llama_options();
  options.layers = 3;
  options.dropout = 0.1;
  return std::make_unique<models::Llama>(options);
}

std::vector<double> traffic_of(const Traffic& traffic) {
  std::vector<double> numbers;
  for (const auto& [axis, kinds] : traffic.by_axis())
    for (const auto& kind : kinds)
      numbers.insert(numbers.end(), {static_cast<double>(kind.count), std::round(kind.bytes)});
  return numbers;
}

/// Whose sums are cut between leaves, and stay unfinished.
std::unique_ptr<models::Model> cut_blocks() { return testing::make_canonical_model(testing::kCanonicalModels[0]); }

Job job_of(const Trial& trial) {
  if (trial.in_parts) return testing::canonical_job(testing::kCanonicalModels[0], 4, 2);
  auto job = trial.is_native ? testing::native_job() : testing::small_job();
  job.training.local_batch_size = 2;  // with accumulation
  return job;
}

Outcome train_rank(const Trial& trial, std::vector<int> local_ranks, const std::shared_ptr<Transport>& inner,
                   bool overlap) {
  auto job = job_of(trial);
  job.training.mixed_precision_param = trial.dtype;
  job.activation_checkpoint.mode = trial.recompute;
  job.parallelism.fsdp_reshard_after_forward = trial.reshard;
  job.parallelism.data_parallel_bucket_cap_mb = trial.bucket_cap_mb;
  job.parallelism.enable_async_tensor_parallel = trial.in_parts;
  job.parallelism.pipeline_parallel_schedule = trial.schedule;
  const auto counted = inner ? std::make_shared<OutstandingCount>(inner) : nullptr;
  TrainingRun::Options options;
  options.mesh = parse_mesh(trial.mesh);
  options.local_ranks = std::move(local_ranks);
  options.transport = counted;
  options.overlap = overlap;
  options.make_model = trial.in_parts ? cut_blocks : three_blocks;
  TrainingRun run(job, options);
  for (int64_t step = 1; step <= 2; ++step) run.step(step, testing::batch_for(job, step), 1e-2);
  return {state_digest(run.state()).text(), traffic_of(run.world().traffic()), counted ? counted->most : 0,
          counted ? counted->reductions_left : 0, run.world().part<Decomposition>().counts()};
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

/// The same as of one collective behind the other.
std::vector<Outcome> overlapped(const Trial& trial) {
  const auto together = train_rank(trial, {}, nullptr, true);
  auto outcomes = train_ranks(trial, true, streams_of(trial));
  const auto waiting = train_ranks(trial, false, streams_of(trial));
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].digest, together.digest) << trial.mesh << " rank " << rank;
    EXPECT_EQ(waiting[rank].digest, together.digest) << trial.mesh << " rank " << rank;
    EXPECT_EQ(outcomes[rank].traffic, waiting[rank].traffic) << trial.mesh << " rank " << rank;
    EXPECT_FALSE(outcomes[rank].traffic.empty()) << trial.mesh;
    const bool posts_ahead = std::string_view(trial.mesh).starts_with("pp");
    if (!posts_ahead) EXPECT_EQ(waiting[rank].outstanding, 1) << trial.mesh << " rank " << rank;
    EXPECT_EQ(waiting[rank].reductions_left, 0) << trial.mesh << " rank " << rank;
  }
  return outcomes;
}

/// The next block's parameters, the last block's gradients, and what is waited for.
TEST(OverlappedTraining, HasTheBitsAndTheTrafficOfOneCollectiveBehindTheOther) {
  const Trial trials[] = {{"dp_shard=2"},
                          {"dp_shard=2,tp=2"},
                          {"dp_shard=3"},
                          {"dp_shard=3", "full", "default", "float32", true},
                          {"dp_shard=2,cp=2", "none", "default", "float32", true, 0},
                          {"dp_shard=2", "selective", "never"},
                          {"dp_replicate=2,dp_shard=2", "none", "default", "bfloat16"}};
  for (const auto& trial : trials)
    for (const auto& outcome : overlapped(trial)) {
      EXPECT_GE(outcome.outstanding, 2) << trial.mesh;
      EXPECT_LE(outcome.outstanding, 3) << trial.mesh;
      const bool waits_for_others =
          std::string_view(trial.mesh).find(',') != std::string_view::npos;  // and takes what is there meanwhile
      if (!waits_for_others) EXPECT_GT(outcome.reductions_left, 0) << trial.mesh;
    }
}

/// With buckets of one gradient each all that the last microbatch gives is under way: of 3 blocks 6, the table, norm
/// and output. Of steps that fit into one bucket nothing is.
TEST(OverlappedTraining, ReducesWhatReplicasHaveWhileBackwardGoesOn) {
  for (const bool is_native : {false, true})
    for (const auto& outcome : overlapped({"dp_replicate=2", "none", "default", "float32", is_native, 0}))
      EXPECT_EQ(outcome.reductions_left, 2 * 21);
  for (const auto& outcome : overlapped({"dp_replicate=3", "none", "default", "float32", true, 0}))
    EXPECT_GE(outcome.reductions_left, 2 * 21);
  for (const char* mesh : {"dp_replicate=2,tp=2", "pp=2,dp_replicate=2"})
    overlapped({mesh, "none", "default", "float32", false, 0});
  for (const auto& outcome : overlapped({"dp_replicate=2"})) EXPECT_EQ(outcome.outstanding, 1);
}

/// Without parameters that are cut nothing is to be gathered.
TEST(OverlappedTraining, HasNothingUnderWayWithoutShards) {
  const Trial trial{"tp=3"};
  for (const auto& outcome : train_ranks(trial, true, streams_of(trial))) EXPECT_EQ(outcome.outstanding, 1);
}

/// Of a microbatch's forward and backward four products of each layer begin with rows that are here, four are sent in
/// rows, and one of each belongs to the output; recomputed layers have two of each more. The first of a shape is whole.
TEST(OverlappedTraining, HasTheBitsOfProductsThatWait) {
  constexpr int64_t kPasses = 4, kLayers = 2, kShapes = 5;
  for (const char* mesh : {"tp=2", "tp=3", "dp_shard=2,tp=2", "cp=2,tp=2", "pp=2,tp=2"})
    for (const std::string recompute : {"none", "full", "selective"})
      for (const char* dtype : {"float32", "bfloat16"})
        for (const auto& outcome : overlapped({mesh, recompute.c_str(), "default", dtype, false, 25, true})) {
          EXPECT_EQ(outcome.in_parts.gathers, outcome.in_parts.scatters) << mesh;
          EXPECT_GT(outcome.in_parts.gathers, 0) << mesh;
          if (!std::string_view(mesh).starts_with("tp") || recompute == "selective") continue;
          EXPECT_EQ(outcome.in_parts.gathers, kPasses * ((recompute == "full" ? 6 : 4) * kLayers + 1) - kShapes);
        }
  for (const auto& outcome : overlapped({"pp=2,tp=2", "none", "default", "float32", false, 25, true, "ZBH1"}))
    EXPECT_GT(outcome.in_parts.scatters, 0);
  EXPECT_EQ(overlapped({"tp=2"})[0].in_parts, Decomposition::Counts{});
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
  const GatherRecipe recipe{{Layout::replicated(mesh)}, {c10::kFloat}};
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
