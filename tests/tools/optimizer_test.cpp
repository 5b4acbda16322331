// Jobs with another optimizer, and with other sizes than a flavor's, through the command line: trained, verified,
// resumed, recorded and replayed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kSgd =
    " --optimizer.name SGD --optimizer.momentum 0.9 --optimizer.lr 0.05 --parallelism.tensor_parallel_degree 2";

class Optimizers : public ::testing::Test {
 protected:
  lockstep::Run train(const std::string& more) {
    return run_lockstep("train " + job_ + " -q --json " + folder_.file("result.json") + " " + more);
  }
  std::string digest() const {
    return nlohmann::json::parse(file_content(folder_.file("result.json"))).at("state_digest");
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_), traces_ = folder_.file("traces");
};

TEST_F(Optimizers, SgdIsVerifiedOnAMesh) {
  const auto run = train("--verify" + std::string(kSgd));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const auto on_mesh = digest();
  EXPECT_EQ(train(std::string(kSgd) + " --parallelism.tensor_parallel_degree 1 --training.local_batch_size 8 "
                                      "--parallelism.data_parallel_shard_degree 1")
                .code,
            0);
  EXPECT_EQ(digest(), on_mesh) << "one device";
  ASSERT_EQ(train("--parallelism.tensor_parallel_degree 2").code, 0);
  EXPECT_NE(digest(), on_mesh) << "AdamW";
}

TEST_F(Optimizers, SgdGoesOnFromACheckpoint) {
  ASSERT_EQ(train(kSgd).code, 0);
  const auto whole = digest();
  ASSERT_EQ(train(std::string(kSgd) + " --training.steps 2 --lr_scheduler.total_steps 4 --checkpoint.enable").code, 0);
  const auto rest = train(std::string(kSgd) + " --checkpoint.enable");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(digest(), whole);
  const auto list = run_lockstep("checkpoint inspect " + folder_.file("out") + "/checkpoint/step-4");
  EXPECT_THAT(list.out, HasSubstr("optimizer.momentum.output.bias"));
  const auto unsaid = train("--checkpoint.enable");
  EXPECT_EQ(unsaid.code, 2);
  EXPECT_THAT(unsaid.err, HasSubstr("step-4: was saved by another run: optimizer.name was \"SGD\", is \"AdamW\"; "));
  const auto other =
      train("--checkpoint.enable --checkpoint.allow_changed optimizer.name,optimizer.lr,optimizer.momentum");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("step-4: has no optimizer.mean.layers.0.down.bias"),
                               HasSubstr("the job's model or optimizer is another than the one that was saved")));
}

TEST_F(Optimizers, SgdIsRecordedAndReplayed) {
  ASSERT_EQ(train("--record " + traces_ + kSgd).code, 0);
  for (const char* rank : {"0", "3"}) {
    const auto run = run_lockstep("replay " + traces_ + " --rank " + rank + " --step 3");
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr(", step 3: identical: "));
  }
  const auto reference = run_lockstep("replay " + traces_ + " --against reference --step 2");
  EXPECT_EQ(reference.code, 0) << reference.out << reference.err;
  const auto changed = run_lockstep("replay " + traces_ + " --rank 0 --step 2 --set optimizer.momentum=0.8");
  EXPECT_EQ(changed.code, 3) << changed.out;
  EXPECT_THAT(changed.out, HasSubstr("optimizer"));
}

/// Every other optimizer, with an average of weights and a group.
class EachOptimizer : public Optimizers, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string settings() const {
    std::string more = std::string(" --optimizer.name ") + GetParam() +
                       " --optimizer.ema_decay 0.5 --optimizer.lr 0.01 --parallelism.tensor_parallel_degree 2 "
                       "--optimizer.groups '[{pattern = \"*.bias\", lr_factor = 0.5, weight_decay = 0.0}]'";
    return more + (GetParam() == std::string("Ranger21") ? " --lr_scheduler.warmup_steps 200" : "");
  }
};

TEST_P(EachOptimizer, IsVerifiedAndGoesOnFromACheckpoint) {
  const auto verified = train("--verify" + settings());
  ASSERT_EQ(verified.code, 0) << verified.out << verified.err;
  const auto whole = digest();
  ASSERT_EQ(train(settings() + " --training.steps 2 --lr_scheduler.total_steps 4 --checkpoint.enable").code, 0);
  const auto rest = train(settings() + " --checkpoint.enable");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(digest(), whole);
  EXPECT_THAT(run_lockstep("checkpoint inspect " + folder_.file("out") + "/checkpoint/step-4").out,
              HasSubstr("optimizer.average.output.bias"));
  const auto other = train(settings() + " --checkpoint.enable --optimizer.groups []");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("was saved by another run: optimizer.groups was [{pattern = \"*.bias\", "));
}

TEST_P(EachOptimizer, IsRecordedAndReplayed) {
  ASSERT_EQ(train("--record " + traces_ + settings()).code, 0);
  for (const char* rank : {"0", "3"}) {
    const auto run = run_lockstep("replay " + traces_ + " --rank " + rank + " --step 3");
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr(", step 3: identical: "));
  }
}

TEST_P(EachOptimizer, IsCheckedUnderNativeNumerics) {
  const auto run =
      train("--verify --numerics.mode native --training.steps 2 --lr_scheduler.total_steps 4" + settings());
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

INSTANTIATE_TEST_SUITE_P(All, EachOptimizer, ::testing::Values("Adam", "Lion", "Muon", "Ranger21"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_F(Optimizers, SizesOfTheJobReplaceTheFlavors) {
  const std::string sizes =
      " --model.name llama3 --model.width 48 --model.layers 1 --model.heads 6 --model.key_value_heads 2 "
      "--model.hidden 64 --model.vocabulary 256 --model.dropout 0.1";
  const auto dry = train("--dry-run" + sizes);
  ASSERT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("model llama3 debugmodel: width 48, layers 1, heads 6, key_value_heads 2, hidden 64, "
                                 "vocabulary 256, dropout 0.1\n"));
  const auto trained = train("--verify --parallelism.tensor_parallel_degree 2" + sizes);
  EXPECT_EQ(trained.code, 0) << trained.out << trained.err;
  EXPECT_THAT(file_content(folder_.file("out") + "/job.toml"),
              AllOf(HasSubstr("\nwidth = 48\n"), HasSubstr("\nkey_value_heads = 2\n"), HasSubstr("\ndropout = 0.1\n")));
}

TEST_F(Optimizers, SizesOfTheFlavorAreNotSpelledOut) {
  const auto printed = run_lockstep("train " + job_ + " -q --print-job").out;
  EXPECT_THAT(printed, HasSubstr("\n[model]\nname = \"mlp\"\nflavor = \"debugmodel\"\nconverters = []\n\n"));
  const auto reset = run_lockstep("train " + job_ + " -q --print-job --model.width 32 --model.width none").out;
  EXPECT_EQ(reset, printed);
}

TEST_F(Optimizers, ATextThatTheVocabularyLacksIsRefused) {
  const auto run = train("--model.vocabulary 100");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("outside the model's vocabulary of 100."));
}

}  // namespace
}  // namespace lockstep
