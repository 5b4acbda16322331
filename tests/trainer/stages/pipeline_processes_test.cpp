// Each rank of a pipeline, or of a ring of attention, in a World of its own, over the streams that processes use: the
// bits of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "fuzz/trials/streams.h"
#include "replay/store/recording_folder.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/stages/two_steps.h"
#include "trainer/recording/replayed_run.h"
#include "trainer/recording/step_recorder.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

std::unique_ptr<models::Model> tied_llama() {
  auto options = testing::small_llama_options();
  options.layers = 4;
  options.dropout = 0.1;
  options.tied_head = true;
  options.length = 1024;
  return std::make_unique<models::Llama>(options);
}

constexpr const char *kShared = "shared optimizer state", *kBalancedRing = "a balanced ring",
                     *kPacked = "a balanced ring of packed documents";
// What one device computes in the same way.
constexpr const char *kPairs = "pairs of preferences", *kMixed = "float32 beside bfloat16";

struct Trial {
  const char* mesh;
  int64_t batch;
  const char* schedule = "1F1B";
  const char* dtype = "float32";
  const char* method = "allgather";  ///< or kHeadTail, or one of the above
  int64_t length = 12;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Trial& trial, std::ostream* out) {
  *out << trial.mesh << " " << trial.schedule << " " << trial.method;
}

void set_method(std::string_view method, Job& job) {
  if (method == kHeadTail) {
    job.parallelism.context_parallel_load_balancer = kHeadTail;
  } else if (method == kBalancedRing || method == kPacked) {
    job.training.pack_documents = method == kPacked;
    job.parallelism.context_parallel_rotate_method = kRing;
    job.parallelism.context_parallel_load_balancer = kHeadTail;
  } else if (method == kShared) {
    job.parallelism.shard_optimizer_state = true;
  } else if (method == kPairs) {
    job.training.dataset = "preferences", job.training.loss = kPreferenceLoss;
    job.lora = {.rank = 2, .dropout = 0.1, .targets = {"layers.*"}};
    job.parallelism.pipeline_parallel_microbatch_size = 2;
  } else if (method == kMixed) {
    job.training.mixed_precision_float32 = {"tok_embeddings.weight", "*norm.weight", "layers.2.feed_forward.*"};
  } else {
    job.parallelism.context_parallel_rotate_method = method;
  }
}

Job job_of(const Trial& trial) {
  auto job = testing::small_job();
  job.training.global_batch_size = trial.batch;
  job.training.local_batch_size = trial.batch / parse_mesh(trial.mesh).data_parallel();
  job.training.mixed_precision_param = trial.dtype;
  job.parallelism.pipeline_parallel_schedule = trial.schedule;
  job.training.seq_len = trial.length;
  set_method(trial.method, job);
  return job;
}

TrainingRun::Options options_of(const Trial& trial) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(trial.mesh);
  options.make_model = tied_llama;
  return options;
}

/// Loss, norm and state of two steps, and a loss without training.
std::string train(const Trial& trial, std::vector<int> local_ranks, const std::shared_ptr<Transport>& transport) {
  const auto job = job_of(trial);
  auto options = options_of(trial);
  options.local_ranks = std::move(local_ranks);
  options.transport = transport;
  TrainingRun run(job, std::move(options));
  return testing::two_steps(job, run);
}

/// One thread per rank.
template <class Work>
auto on_each_rank(const Trial& trial, const Work& work) {
  const int ranks = static_cast<int>(parse_mesh(trial.mesh).ranks());
  const auto transports = testing::connected_transports(ranks, testing::StreamKind::kMemory, std::chrono::seconds{60});
  std::vector<std::future<decltype(work(0, transports[0]))>> futures;
  for (int rank = 0; rank < ranks; ++rank)
    futures.push_back(std::async(std::launch::async, work, rank, transports[static_cast<size_t>(rank)]));
  std::vector<decltype(work(0, transports[0]))> all;
  for (auto& future : futures) all.push_back(future.get());
  return all;
}

class PipelineProcesses : public ::testing::TestWithParam<Trial> {};

TEST_P(PipelineProcesses, HaveTheBitsOfOneProcess) {
  const auto& trial = GetParam();
  const auto expected = train(trial, {}, nullptr);
  const bool is_way = trial.method == std::string_view(kPairs) || trial.method == std::string_view(kMixed);
  const auto* method = is_way ? trial.method : "allgather";
  EXPECT_EQ(train({"one device", trial.batch, "1F1B", trial.dtype, method, trial.length}, {}, nullptr), expected);
  const auto found =
      on_each_rank(trial, [&](int rank, const auto& transport) { return train(trial, {rank}, transport); });
  for (size_t rank = 0; rank < found.size(); ++rank) EXPECT_EQ(found[rank], expected) << "rank " << rank;
}

/// Packed documents, which recordings do not hold: only bits, and only of several processes beside one.
TEST(PackedProcesses, HaveTheBitsOfOneProcess) {
  for (const Trial& trial :
       {Trial{"cp=4", 1, "1F1B", "float32", kPacked, 1024}, {"pp=2,cp=2", 2, "ZBH1", "bfloat16", kPacked, 512}}) {
    const auto expected = train(trial, {}, nullptr);
    EXPECT_EQ(train({"one device", trial.batch, "1F1B", trial.dtype, kPacked, trial.length}, {}, nullptr), expected);
    const auto found =
        on_each_rank(trial, [&](int rank, const auto& transport) { return train(trial, {rank}, transport); });
    for (size_t rank = 0; rank < found.size(); ++rank) EXPECT_EQ(found[rank], expected) << trial.mesh << " " << rank;
  }
}

/// A step that is checked, after one that was not: the reference takes the state of all stages.
TEST_P(PipelineProcesses, AreVerified) {
  const auto& trial = GetParam();
  const auto found = on_each_rank(trial, [&](int rank, const auto& transport) {
    const auto job = job_of(trial);
    auto options = options_of(trial);
    options.local_ranks = {rank};
    options.transport = transport;
    options.keep_gradients = true;
    TrainingRun run(job, options);
    StepVerifier verifier(job, options, run);
    std::string text;
    for (const int64_t step : {1, 2, 4}) {
      if (step == 4) run.step(3, testing::batch_for(job, 3), 1e-2);
      const auto check = verifier.check(step, testing::batch_for(job, step), 1e-2);
      text += fmt::format("{}{}, {} bits; ", check.difference, check.comparison.agrees() ? "agrees" : "differs",
                          check.comparison.differing_bits);
    }
    return text;
  });
  for (const auto& text : found) EXPECT_EQ(text, "agrees, 0 bits; agrees, 0 bits; agrees, 0 bits; ");
}

/// What a rank has recorded in a process of its own it replays, and it is what it would have in one process.
TEST_P(PipelineProcesses, ReplayOneRankAlone) {
  const auto& trial = GetParam();
  auto job = job_of(trial);
  const auto degrees = parse_mesh(trial.mesh);
  set_mesh(job, degrees);
  const TemporaryFolder folder;
  const auto record = [&](const std::string& name, std::vector<int> local_ranks, const auto& transport) {
    auto own = job;
    own.record.folder = folder.file(name);
    own.record.state_every = 1;
    auto options = options_of(trial);
    options.local_ranks = std::move(local_ranks);
    options.transport = transport;
    options.as_messages = true;
    TrainingRun run(own, std::move(options));
    StepRecorder recorder(own, run);
    for (const int64_t step : {1, 2}) {
      run.step(step, testing::batch_for(own, step), 1e-2);
      recorder.close_step();
    }
    recorder.finish();
    return 0;
  };
  record("one", {}, std::shared_ptr<Transport>());
  on_each_rank(trial,
               [&](int rank, const auto& transport) { return record(fmt::format("rank{}", rank), {rank}, transport); });
  for (int rank = 0; rank < static_cast<int>(degrees.ranks()); ++rank)
    for (const auto& [name, step] : {std::pair<std::string, int64_t>{"one", 1},
                                     {"one", 2},
                                     {fmt::format("rank{}", rank), 1},
                                     {fmt::format("rank{}", rank), 2}}) {
      const auto recording = replay::RecordingFolder(folder.file(name)).read(rank, step);
      const auto outcome = ReplayedRun(recording, {}, tied_llama).replay(recording);
      EXPECT_TRUE(outcome.is_identical())
          << name << ", rank " << rank << ", step " << step << ": " << outcome.stopped_by;
      EXPECT_EQ(outcome.ops, recording.ops.size());
      EXPECT_EQ(outcome.collectives, recording.collectives.size());
    }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, PipelineProcesses,
    ::testing::Values(
        Trial{"pp=2", 1}, Trial{"pp=2", 4, "GPipe"}, Trial{"pp=3", 6, "Interleaved1F1B"},
        Trial{"pp=2", 8, "Interleaved1F1B", "bfloat16"}, Trial{"pp=4", 5}, Trial{"pp=2,dp_shard=2", 8},
        Trial{"pp=2,dp_replicate=2,tp=2", 6, "Interleaved1F1B"}, Trial{"pp=4", 6, "ZBH1"},
        Trial{"pp=3", 6, "ZBVZeroBubble", "bfloat16"}, Trial{"pp=2,dp_shard=2,tp=2", 8, "DualPipeV"},
        Trial{"pp=2,dp_replicate=2,cp=2", 8, "InterleavedZeroBubble"},
        Trial{"pp=2,cp=2", 3, "ZBH1", "float32", kUlysses}, Trial{"cp=4", 1, "1F1B", "float32", kRing, 1024},
        Trial{"cp=2,tp=2", 2, "1F1B", "bfloat16", kRing, 512}, Trial{"pp=2,cp=2", 2, "1F1B", "float32", kRing, 512},
        Trial{"cp=4", 1, "1F1B", "float32", kBalancedRing, 1024},
        Trial{"pp=2,cp=2", 2, "ZBH1", "bfloat16", kBalancedRing, 512}, Trial{"pp=2,cp=2", 3},
        Trial{"cp=4", 2, "1F1B", "float32", kHeadTail, 256}, Trial{"dp_replicate=3", 6, "1F1B", "bfloat16", kShared},
        Trial{"pp=2,dp_replicate=2", 4, "1F1B", "float32", kShared},
        Trial{"pp=2,dp_replicate=2", 4, "ZBVZeroBubble", "float32", kShared},
        Trial{"pp=2,cp=2", 2, "ZBH1", "bfloat16", kHeadTail, 128}, Trial{"pp=2,dp_shard=3", 6, "1F1B", "bfloat16"},
        Trial{"pp=2", 8, "1F1B", "float32", kPairs}, Trial{"pp=3,dp_shard=2", 8, "ZBH1", "bfloat16", kPairs},
        Trial{"pp=2,dp_shard=2", 8, "Interleaved1F1B", "bfloat16", kMixed},
        Trial{"pp=2,tp=2", 4, "ZBH1", "bfloat16", kMixed}));

}  // namespace
}  // namespace lockstep::trainer
