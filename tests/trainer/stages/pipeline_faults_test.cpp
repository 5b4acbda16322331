// What goes wrong between stages is noticed, and called by its name.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "trainer/verify/op_verifier.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr int kTransfersOfStep = 10;  ///< 4 activations, 4 gradients, a shared parameter and its gradient

/// Changes one number of what the receiving rank with tp=0 gets by the `index`-th transfer of a step.
struct OtherNumber : Observer {
  explicit OtherNumber(int at) : index(at) {}
  void before_collective(const CollectiveEvent& event) override {
    const bool arrives = event.kind == CollectiveKind::kTransfer && event.mesh.transfer_end().receives;
    is_it_ = arrives && count++ % kTransfersOfStep == index;
    if (is_it_) id = event.id.text();
  }
  void received(const CollectiveEvent&, int rank, int, at::Tensor& payload) override {
    if (!is_it_ || rank % 2 != 0) return;
    payload = payload.clone();
    static_cast<float*>(payload.mutable_data_ptr())[payload.numel() / 2] += 1;
  }
  int index, count = 0;
  std::string id;

 private:
  bool is_it_ = false;
};

Job job_of() {
  auto job = testing::small_job();
  job.training.global_batch_size = job.training.local_batch_size = 4;
  return job;
}

TEST(PipelineFaults, AnyTransferThatIsWrongIsBlamed) {
  auto options = testing::small_llama_on("pp=2,tp=2");
  options.make_model = [] {
    auto sizes = testing::small_llama_options();
    sizes.tied_head = true;
    return std::make_unique<models::Llama>(sizes);
  };
  std::set<std::string> ids;
  for (int index = 0; index < kTransfersOfStep; ++index) {
    StepVerifier verifier(job_of(), options);
    OtherNumber fault(index);
    const ObserverScope scope(verifier.candidate().world().observers(), fault);
    const auto check = verifier.check(1, testing::batch_for(job_of(), 1), 1e-2);
    ASSERT_FALSE(check.agrees()) << fault.id;
    EXPECT_EQ(check.blame->kind, "collective") << check.blame->text();
    EXPECT_EQ(check.blame->collective, "transfer") << check.blame->text();
    EXPECT_EQ(check.blame->axis, "pp") << check.blame->text();
    ids.insert(check.blame->id);
  }
  EXPECT_EQ(ids.size(), static_cast<size_t>(kTransfersOfStep));
  EXPECT_TRUE(ids.contains("step 1, microbatch 2, forward, stages.1, transfer #0"));
  EXPECT_TRUE(ids.contains("step 1, microbatch 2, backward, stages.0, transfer #0"));
}

/// Without the finding of where one is checked op by op.
TEST(PipelineFaults, OpModeComparesTransfers) {
  const auto options = testing::small_llama_on("pp=2,tp=2");
  for (const int index : {-1, 3}) {
    TrainingRun run(job_of(), options);
    OpVerifier verifier(run, /*sample=*/1);
    OtherNumber fault(index);
    const ObserverScope scope(run.world().observers(), fault);
    StepCheck check;
    {
      const OpVerifier::Watch watch(verifier);
      run.step(1, testing::batch_for(job_of(), 1), 1e-2);
    }
    verifier.judge(check);
    EXPECT_EQ(check.agrees(), index < 0) << check.difference;
    if (index >= 0) EXPECT_EQ(check.blame->id, fault.id) << check.blame->text();
  }
}

struct Refused {
  const char *mesh, *schedule, *expected;
};

TEST(PipelineRefusals, SayWhatWouldDo) {
  for (const auto& refused :
       {Refused{"pp=5", "1F1B", "mesh axis pp=5: 1F1B makes 5 stages, and the model has 4 blocks: choose a smaller"},
        Refused{"pp=3", "Interleaved1F1B", "makes 6 stages, and the model has 4 blocks"},
        Refused{"pp=3", "ZBVZeroBubble", "makes 6 stages, and the model has 4 blocks"},
        Refused{"pp=2", "2F2B", "2F2B is not a pipeline schedule."},
        Refused{"pp=4", "Interleaved1F1B", "makes 8 stages, and the model has 4 blocks"}}) {
    auto job = job_of();
    job.parallelism.pipeline_parallel_schedule = refused.schedule;
    if (std::string_view(refused.mesh) == "pp=4") job.training.global_batch_size = 6;
    EXPECT_THAT(message_of<BadInput>([&] { TrainingRun(job, testing::small_llama_on(refused.mesh)); }),
                HasSubstr(refused.expected))
        << refused.mesh << " " << refused.schedule;
  }
}

TEST(PipelineRefusals, OfAModelThatDoesNotGiveItsBlocks) {
  class Whole final : public models::Model {
   public:
    at::Tensor forward(const at::Tensor& tokens) override {
      return run_block(table_, tokens, [this](const at::Tensor& input) { return table_.forward(input); });
    }
    int64_t vocabulary() const override { return 29; }
    std::vector<Module*> blocks() override { return {&table_}; }

   private:
    models::Embedding table_{*this, "table", 29, 29, models::Initial::fill(0)};
  };
  auto options = testing::small_llama_on("pp=2");
  options.make_model = [] { return std::make_unique<Whole>(); };
  EXPECT_THAT(message_of<BadInput>([&] { TrainingRun(job_of(), options); }),
              HasSubstr("does not give its blocks as a list (Model::block_calls), so that it cannot be cut"));
}

}  // namespace
}  // namespace lockstep::trainer
