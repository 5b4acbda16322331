// A step that one device recorded is replayed on another: what is said where there is none, what the verdict is
// elsewhere, and, where there is a GPU, that it replays its own steps bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "replay/store/recording_folder.h"
#include "rng/cuda_fill.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/replayed_run.h"
#include "trainer/recording/step_recorder.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kSteps = 3;

/// Steps of all ranks of a mesh.
class RecordedOn {
 public:
  RecordedOn(const char* device, const char* mesh, const char* numerics = "native") {
    auto job = testing::native_job();
    job.numerics.mode = numerics;
    const auto degrees = parse_mesh(mesh);
    job.parallelism.data_parallel_shard_degree = degrees.dp_shard;
    job.parallelism.tensor_parallel_degree = degrees.tp;
    job.training.local_batch_size = 12 / degrees.data_parallel() / 2;  // with accumulation
    job.training.device = device;
    job.record.folder = folder_.file("traces");
    TrainingRun::Options options;
    options.mesh = degrees;
    options.make_model = testing::small_llama;
    options.as_messages = true;
    TrainingRun run(job, options);
    StepRecorder recorder(job, run);
    for (int64_t step = 1; step <= kSteps; ++step) {
      run.step(step, testing::batch_for(job, step), 1e-2);
      recorder.close_step();
    }
    recorder.finish();
  }

  replay::RecordingFolder folder() const { return replay::RecordingFolder(folder_.file("traces")); }

 private:
  TemporaryFolder folder_;
};

std::vector<Setting> on(const char* device) { return {command_line_setting("training.device", device)}; }

/// All steps of a rank: the verdict of each.
std::vector<ReplayVerdict> replayed(const replay::RecordingFolder& traces, int rank, const char* device) {
  auto recording = traces.read(rank, 1);
  ReplayedRun run(recording, on(device), testing::small_llama);
  std::vector<ReplayVerdict> verdicts{run.replay(recording).verdict};
  for (int64_t step = 2; step <= kSteps; ++step) {
    recording = traces.read(rank, step);
    const auto outcome = run.replay(recording);
    verdicts.push_back(outcome.verdict);
    if (!outcome.agrees() && outcome.first_difference) ADD_FAILURE() << outcome.first_difference->text();
  }
  return verdicts;
}

/// A step of a CPU that says that a GPU recorded it.
replay::StepRecording as_of_a_gpu(const RecordedOn& recorded) {
  auto recording = recorded.folder().read(0, 1);
  const std::string cpu = "device = \"cpu\"";
  recording.job.replace(recording.job.find(cpu), cpu.size(), "device = \"cuda\"");
  for (auto& [key, value] : recording.machine)
    if (key == "device") value = "cuda, NVIDIA H100 80GB HBM3, driver 13000";
  return recording;
}

TEST(ReplayDevice, OfAGpuIsWithinBoundOnACpu) {
  const RecordedOn recorded("cpu", "dp_shard=2");
  const auto recording = as_of_a_gpu(recorded);
  const auto outcome = ReplayedRun(recording, on("cpu"), testing::small_llama).replay(recording);
  EXPECT_EQ(outcome.verdict, ReplayVerdict::kWithinBound) << "though no bit differs";
  EXPECT_THAT(outcome.other_machine,
              ::testing::Contains("device: cuda, NVIDIA H100 80GB HBM3, driver 13000 there, cpu here"));
}

TEST(ReplayDevice, IsAFactOfTheMachine) {
  EXPECT_THAT(machine_facts("cpu"), ::testing::Contains(::testing::Pair("device", "cpu")));
  EXPECT_THAT(machine_facts("cuda"), ::testing::Contains(::testing::Pair("device", ::testing::StartsWith("cuda, "))));
}

TEST(ReplayDevice, OfAGpuNeedsOneUnlessToldOtherwise) {
  if (rng::cuda_unavailable_reason().empty()) GTEST_SKIP() << "there is a GPU";
  const RecordedOn recorded("cpu", "dp_shard=2");
  const auto recording = as_of_a_gpu(recorded);
  try {
    const ReplayedRun run(recording, {}, testing::small_llama);
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_EQ(error.what(),
              "step 1 of rank 0 cannot be replayed on a GPU here, use --device cpu: " + rng::cuda_unavailable_reason());
  }
}

TEST(ReplayDevice, OfTheRecordingIsIdentical) {
  for (const char* device : {"cpu", "cuda"}) {
    const auto reason = device == std::string("cuda") ? rng::cuda_unavailable_reason() : "";
    if (!reason.empty()) GTEST_SKIP() << "NOT CHECKED: recording and replaying on a GPU (" << reason << ")";
    for (const char* mesh : {"dp_shard=2", "dp_shard=2,tp=3"}) {
      const RecordedOn recorded(device, mesh);
      const auto traces = recorded.folder();
      for (const int rank : traces.ranks())
        EXPECT_THAT(replayed(traces, rank, device), ::testing::Each(ReplayVerdict::kIdentical))
            << device << " " << mesh;
    }
  }
}

TEST(ReplayDevice, ElsewhereIsWithinBound) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    GTEST_SKIP() << "NOT CHECKED: recordings of a GPU on a CPU, and of a CPU on a GPU (" << reason << ")";
  const RecordedOn cpu("cpu", "dp_shard=2"), gpu("cuda", "dp_shard=2");
  EXPECT_THAT(replayed(gpu.folder(), 1, "cpu"), ::testing::Each(ReplayVerdict::kWithinBound));
  EXPECT_THAT(replayed(cpu.folder(), 1, "cuda"), ::testing::Each(ReplayVerdict::kWithinBound));
}

TEST(ReplayDevice, OfCanonicalNumericsIsIdenticalOnAnyDevice) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    GTEST_SKIP() << "NOT CHECKED: canonical recordings of a GPU on a CPU, and of a CPU on a GPU (" << reason << ")";
  for (const auto& [there, here] : {std::pair{"cuda", "cpu"}, {"cpu", "cuda"}, {"cuda", "cuda"}}) {
    const RecordedOn recorded(there, "dp_shard=2", "canonical");
    EXPECT_THAT(replayed(recorded.folder(), 1, here), ::testing::Each(ReplayVerdict::kIdentical))
        << there << " on " << here;
  }
}

}  // namespace
}  // namespace lockstep::trainer
