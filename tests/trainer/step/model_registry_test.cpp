#include "trainer/step/model_registry.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

Job job_of(const char* name) {
  Job job;
  job.model.name = name;
  job.training.seq_len = 8;
  return job;
}

std::string problem(const Job& job) {
  try {
    make_model(job);
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TEST(ModelRegistry, BuildsEveryNameThatJobsMaySay) {
  for (const auto& choice : kModelNames) EXPECT_GT(make_model(job_of(choice.name.data()))->parameter_count(), 0);
  EXPECT_EQ(problem(job_of("lama3")),
            "model.name is \"lama3\", must be gpt2, llama3, mlp or moe. Did you mean llama3?");
}

TEST(ModelRegistry, WithoutSizesItIsTheFlavor) {
  EXPECT_EQ(make_model(job_of("gpt2"))->sizes_text(),
            "width 128, layers 2, heads 4, hidden 512, vocabulary 256, positions 1024, dropout 0.1");
  EXPECT_EQ(make_model(job_of("llama3"))->sizes_text(),
            "width 256, layers 6, heads 16, key_value_heads 16, hidden 768, vocabulary 2048, dropout 0");
  EXPECT_EQ(make_model(job_of("mlp"))->sizes_text(), "width 64, layers 2, hidden 256, vocabulary 256, dropout 0");
}

TEST(ModelRegistry, EachSizeReplacesTheFlavors) {
  auto job = job_of("llama3");
  job.model.width = 48;
  job.model.layers = 3;
  job.model.heads = 6;
  job.model.key_value_heads = 2;
  job.model.hidden = 80;
  job.model.vocabulary = 300;
  job.model.dropout = 0.25;
  const auto model = make_model(job);
  EXPECT_EQ(model->sizes_text(),
            "width 48, layers 3, heads 6, key_value_heads 2, hidden 80, vocabulary 300, dropout 0.25");
  EXPECT_EQ(model->vocabulary(), 300);
  // Per layer: queries, keys and values, output, gate and up, down, two norms.
  const int64_t layer = (48 + 2 * 2 * 8) * 48 + 48 * 48 + 3 * 80 * 48 + 2 * 48;
  EXPECT_EQ(model->parameter_count(), 3 * layer + 2 * 300 * 48 + 48);
  EXPECT_EQ(model->blocks().size(), 5u);
}

TEST(ModelRegistry, SizesThatDoNotFitAreNamed) {
  auto job = job_of("llama3");
  job.model.width = 250;
  EXPECT_EQ(problem(job), "model.width 250 is no multiple of model.heads 16; set both so that one divides the other.");
  job.model.width = 48;
  EXPECT_EQ(problem(job),
            "model.width 48 over model.heads 16 gives heads of 3 elements, which must be even: rotations turn pairs.");
  job.model.heads = 8;
  EXPECT_EQ(problem(job),
            "model.heads 8 is no multiple of model.key_value_heads 16; set both so that one divides the other.");
  job.model.key_value_heads = 4;
  job.model.hidden = 81;
  EXPECT_EQ(problem(job),
            "model.hidden 81 is no multiple of model.key_value_heads 4; set both so that one divides the other.");
  job.model.hidden = 80;
  EXPECT_EQ(problem(job), "");
}

TEST(ModelRegistry, GPT2sSizesReplaceTheFlavors) {
  auto job = job_of("gpt2");
  job.model.width = 48;
  job.model.layers = 3;
  job.model.heads = 6;
  job.model.hidden = 80;
  job.model.vocabulary = 300;
  job.model.dropout = 0.25;
  EXPECT_EQ(make_model(job)->sizes_text(),
            "width 48, layers 3, heads 6, hidden 80, vocabulary 300, positions 1024, dropout 0.25");
  job.model.heads = 5;
  EXPECT_EQ(problem(job), "model.width 48 is no multiple of model.heads 5; set both so that one divides the other.");
  job.model.heads.reset();
  job.model.key_value_heads = 2;
  EXPECT_EQ(problem(job), "model.key_value_heads 2: model.name \"gpt2\" has no such size; leave it out.");
  job.model.key_value_heads.reset();
  job.training.seq_len = 1025;
  EXPECT_EQ(problem(job),
            "training.seq_len 1025 is longer than the 1024 positions that model.flavor debugmodel of gpt2 has.");
}

TEST(ModelRegistry, AnMlpHasNoHeads) {
  auto job = job_of("mlp");
  job.model.heads = 4;
  EXPECT_EQ(problem(job), "model.heads 4: model.name \"mlp\" has no such size; leave it out.");
  job.model.heads.reset();
  job.model.key_value_heads = 2;
  EXPECT_EQ(problem(job), "model.key_value_heads 2: model.name \"mlp\" has no such size; leave it out.");
}

}  // namespace
}  // namespace lockstep::trainer
