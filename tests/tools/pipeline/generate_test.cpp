// `lockstep generate` of what a pipeline has trained: nothing of how it was trained is asked of who reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

TEST(Generate, TakesNothingOfTheTrainingsPipeline) {
  const TemporaryFolder folder;
  const auto job = write_small_job(folder);
  const auto trained = run_lockstep(
      "train " + job +
      " -q --checkpoint.enable --parallelism.data_parallel_shard_degree 1 --parallelism.pipeline_parallel_degree 2 "
      "--training.local_batch_size 8 --parallelism.pipeline_parallel_schedule DualPipeV "
      "--training.mixed_precision_param "
      "bfloat16 --training.mixed_precision_float32 'layers.1.*' --parallelism.module_fqns_per_model_part "
      "'[[\"tok_embeddings\"], [\"layers.0\"], [\"layers.1\"], [\"output\"]]'");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto texts = [&](const std::string& more) {
    const auto run = run_lockstep("generate " + folder.file("out/checkpoint/step-4") + " --prompt the --count 8 " +
                                  more + " -q --json " + folder.file("texts.json"));
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(file_content(folder.file("texts.json"))).at("texts").dump();
  };
  const auto expected = texts("");
  EXPECT_THAT(expected, ::testing::HasSubstr("log_probabilities"));
  for (const char* mesh : {"pp=2", "pp=3", "dp_shard=2", "pp=2,tp=2"})
    EXPECT_EQ(texts(std::string("--mesh ") + mesh), expected) << mesh;
  EXPECT_NE(texts("--int8"), expected);
}

}  // namespace
}  // namespace lockstep
