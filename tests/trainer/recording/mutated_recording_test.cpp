// Recordings changed by somebody who knows the format. Whatever is changed: an error that names it, a replay that
// differs or says where the recording ends, or, if what was changed is nothing that a replay depends on, the same as
// before. A seed decides; LOCKSTEP_MUTATION_SEED repeats one, LOCKSTEP_SOAK runs 10,000 trials.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "core/collective_kind.h"
#include "core/error.h"
#include "core/sanitized.h"
#include "replay/format/validate.h"
#include "replay/store/recording_folder.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/recording_mutations.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/recording/replayed_run.h"
#include "trainer/recording/step_recorder.h"

namespace lockstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;

/// The first step of rank 0 on dp_shard=2.
replay::StepRecording recorded() {
  const TemporaryFolder folder;
  auto job = testing::small_job();
  job.parallelism.data_parallel_shard_degree = 2;
  job.training.local_batch_size = 6;
  job.training.pack_documents = true;
  job.record.folder = folder.file("traces");
  TrainingRun::Options options;
  options.mesh = mesh_of(job);
  options.make_model = testing::small_llama;
  options.as_messages = true;
  TrainingRun run(job, options);
  StepRecorder recorder(job, run);
  run.step(1, testing::batch_for(job, 1), 1e-2);
  recorder.close_step();
  recorder.finish();
  return replay::RecordingFolder(job.record.folder).read(0, 1);
}

ReplayOutcome replayed(const replay::StepRecording& recording) {
  replay::validate(recording);
  return ReplayedRun(recording, {}, testing::small_llama).replay(recording);
}

/// What a replay of rank 0 does not depend on is as if it were not there: times, the machine, the order of the state,
/// the job's text (other texts may be the same job), rows that the other rank reads.
replay::StepRecording without_what_cannot_matter(replay::StepRecording r) {
  for (auto& op : r.ops) op.begin = op.end = 0;
  for (auto& collective : r.collectives) collective.begin = collective.end = 0;
  for (auto& piece : r.pieces) piece.offset = 0;  // the bytes are those of the digest
  r.payload.clear();
  r.machine.clear();
  r.job.clear();
  r.first_sample = r.next_sample = 0;
  std::sort(r.state.begin(), r.state.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (auto& scalar : r.scalars)  // parameters are floats: what they are rounded by is no part of a learning rate
    if (scalar.name == "learning_rate") scalar.bits &= ~uint64_t{0xffffffff};
  const auto own = static_cast<size_t>(r.rows / 2 * r.seq_len);
  if (r.tokens.size() > own) r.tokens.resize(own);
  if (r.labels.size() > own) r.labels.resize(own);
  if (r.positions.size() > own) r.positions.resize(own);
  return r;
}

/// A bit of a summand may vanish when the sum is rounded, and all of what is not the maximum.
replay::StepRecording without_summands(replay::StepRecording r) {
  for (const auto& collective : r.collectives) {
    const auto kind = static_cast<CollectiveKind>(collective.kind);
    const bool adds = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
    for (uint32_t p = 0; adds && p < collective.pieces; ++p) r.pieces[collective.first_piece + p].digest = {};
  }
  return without_what_cannot_matter(std::move(r));
}

struct Counts {
  int refused = 0, different = 0, same = 0, absorbed = 0;
};

void count_trial(const replay::StepRecording& original, const replay::StepRecording& changed, Counts& counts) {
  try {
    const auto outcome = replayed(changed);
    const bool is_reported = !outcome.is_identical() || !outcome.ended_early.empty();
    ++(is_reported ? counts.different : counts.same);
    if (is_reported) return;
    if (without_what_cannot_matter(changed) == without_what_cannot_matter(original)) return;
    ++counts.absorbed;
    EXPECT_TRUE(without_summands(changed) == without_summands(original));
  } catch (const BadInput&) {
    ++counts.refused;
  } catch (const FileError&) {
    ++counts.refused;
  }
}

TEST(MutatedRecording, IsRefusedOrDiffersUnlessItCannotMatter) {
  const char* const asked = std::getenv("LOCKSTEP_MUTATION_SEED");
  const bool soaks = std::getenv("LOCKSTEP_SOAK") != nullptr;
  const uint64_t first = asked ? std::strtoull(asked, nullptr, 10) : 1, trials = asked ? 1 : soaks ? 10'000 : 300;
  const auto original = recorded();
  ASSERT_TRUE(replayed(original).is_identical());
  Counts counts;
  for (uint64_t seed = first; seed < first + trials; ++seed) {
    auto changed = original;
    const auto what = testing::RecordingMutator(changed, seed).mutate();
    SCOPED_TRACE(fmt::format("LOCKSTEP_MUTATION_SEED={}: {}", seed, what));
    const auto begin = Clock::now();
    count_trial(original, changed, counts);
    ASSERT_LT(Clock::now() - begin, std::chrono::seconds(kSanitized ? 40 : 2));
    if (::testing::Test::HasFailure()) return;
  }
  if (!asked) {
    EXPECT_GT(std::min({counts.refused, counts.different, counts.same}), 0);
    EXPECT_LT(counts.absorbed, static_cast<int>(5 + trials / 100));
  }
  std::printf(
      "%lu changed recordings: %d refused, %d differ, %d replay the same, %d of them because a sum took the change "
      "in\n",
      trials, counts.refused, counts.different, counts.same, counts.absorbed);
}

/// What is said of changes that validate() has nothing against.
class ChangedStep : public ::testing::Test {
 protected:
  std::string what_differs() const {
    const auto outcome = replayed(recording_);
    EXPECT_FALSE(outcome.is_identical());
    return outcome.first_difference            ? outcome.first_difference->what
           : outcome.differing_scalars.empty() ? ""
                                               : outcome.differing_scalars.front();
  }
  template <class Family>
  std::string refusal() const {
    return message_of<Family>([&] { replayed(recording_); });
  }
  void replace_in_job(const std::string& from, const std::string& to) {
    ASSERT_NE(recording_.job.find(from), std::string::npos) << recording_.job;
    recording_.job.replace(recording_.job.find(from), from.size(), to);
  }

  replay::StepRecording recording_ = recorded();
};

TEST_F(ChangedStep, WithoutResultsDiffers) {
  recording_.results.clear();
  EXPECT_EQ(what_differs(), "the op has other results than are recorded");
}

TEST_F(ChangedStep, OfAliasesAloneDiffers) {
  for (auto& result : recording_.results)
    result.kind = replay::ResultKind::kAlias, result.bytes = 0, result.digest = {};
  EXPECT_EQ(what_differs(), "result 0 differs; everything before it is as recorded");
}

TEST_F(ChangedStep, WithoutANumberDiffers) {
  std::erase_if(recording_.scalars, [](const auto& scalar) { return scalar.name == "loss"; });
  EXPECT_THAT(what_differs(), StartsWith("numbers of the step: recorded learning_rate "));
  EXPECT_THAT(what_differs(), HasSubstr(" valid_tokens gradient_norm next_learning_rate, now learning_rate "));
}

TEST_F(ChangedStep, BeforeAnotherLearningRateDiffers) {
  auto& next = recording_.scalars.back();
  ASSERT_EQ(next.name, "next_learning_rate");
  next.bits ^= 1;
  EXPECT_THAT(what_differs(), StartsWith("next_learning_rate: recorded "));
}

TEST_F(ChangedStep, ThatDoesNotEndAtItsLastSampleIsRefused) {
  EXPECT_EQ(recording_.next_sample, 12);
  recording_.next_sample = 13;
  EXPECT_EQ(refusal<BadInput>(), "12 samples from 0 on are not followed by sample 13");
}

TEST_F(ChangedStep, WithNumbersInAnotherOrderDiffers) {
  std::swap(recording_.scalars[0], recording_.scalars[1]);
  EXPECT_THAT(what_differs(), StartsWith("numbers of the step: recorded "));
}

TEST_F(ChangedStep, ThatHoldsNothingToCompareIsRefused) {
  recording_.complete = false;
  recording_.ops.clear(), recording_.results.clear(), recording_.collectives.clear();
  recording_.pieces.clear(), recording_.payload.clear();
  EXPECT_EQ(refusal<FileError>(), "step 1 of rank 0 holds no result of an op: nothing can be compared");
}

TEST_F(ChangedStep, ThatEndedEarlySaysSo) {
  recording_.complete = false;
  EXPECT_EQ(replayed(recording_).ended_early, "the recording does not say why");
}

TEST_F(ChangedStep, OfIdsThatTheModelDoesNotKnowIsRefused) {
  recording_.tokens[13] = 29;
  EXPECT_EQ(refusal<FileError>(), "the recording of step 1 has the token 29 at [1, 1]; the model knows 0 to 28");
  recording_.tokens[13] = 0;
  recording_.labels[2] = -7;
  EXPECT_EQ(refusal<FileError>(), "the recording of step 1 has the label -7 at [0, 2]; the model knows 0 to 28");
}

TEST_F(ChangedStep, OfAJobThatNoFileCouldHoldIsRefused) {
  const auto whole = recording_.job;
  replace_in_job("[training]\n", "[training]\nno_such_key = 1\n");
  EXPECT_THAT(refusal<BadInput>(), HasSubstr("training.no_such_key is not a key"));
  recording_.job = whole;
  replace_in_job("data_parallel_shard_degree = 2", "data_parallel_shard_degree = 4");
  EXPECT_THAT(refusal<BadInput>(), HasSubstr("training.global_batch_size 12 is no multiple of"));
  recording_.job = whole;
  replace_in_job("tensor_parallel_degree = 1", "tensor_parallel_degree = 2");
  EXPECT_EQ(refusal<BadInput>(),
            "the recorded job is of mesh dp_shard=2,tp=2, which has 4 ranks; the recording is of 2");
  recording_.job = whole;
  replace_in_job("seq_len = 12", "seq_len = 13");
  EXPECT_EQ(refusal<BadInput>(), "the recorded job has training.seq_len = 13, the recording sequences of 12");
}

TEST(LargerJob, IsRefusedBeforeItsModelIsMade) {
  auto recording = recorded();
  const auto begin = Clock::now();
  const auto large = [] {
    auto options = testing::small_llama_options();
    options.width = 24'000, options.hidden = 3'600'000;  // terabytes
    return std::unique_ptr<models::Model>(std::make_unique<models::Llama>(options));
  };
  EXPECT_THAT(message_of<FileError>([&] { ReplayedRun(recording, {}, large); }),
              HasSubstr("the recorded state has tok_embeddings.weight of ["));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(kSanitized ? 20 : 2));
}

}  // namespace
}  // namespace lockstep::trainer
