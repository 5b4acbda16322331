// The job files of llama3 that come with torchtitan v0.2.2 (torchtitan/models/llama3/train_configs), key by key.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/message_of.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;
using Values = std::map<std::string, std::string>;  ///< "section.key" -> TOML

const Values kCommon{{"job.dump_folder", "\"./outputs\""},
                     {"profiling.enable_profiling", "true"},
                     {"profiling.save_traces_folder", "\"profile_trace\""},
                     {"profiling.profile_freq", "100"},
                     {"metrics.log_freq", "10"},
                     {"metrics.enable_tensorboard", "true"},
                     {"metrics.save_tb_folder", "\"tb\""},
                     {"model.name", "\"llama3\""},
                     {"optimizer.name", "\"AdamW\""},
                     {"optimizer.eps", "1e-8"},
                     {"lr_scheduler.warmup_steps", "200"},
                     {"training.seq_len", "8192"},
                     {"training.max_norm", "1.0"},
                     {"training.steps", "1000"},
                     {"training.dataset", "\"c4\""},
                     {"parallelism.data_parallel_replicate_degree", "1"},
                     {"parallelism.data_parallel_shard_degree", "-1"},
                     {"parallelism.tensor_parallel_degree", "8"},
                     {"parallelism.pipeline_parallel_degree", "1"},
                     {"parallelism.context_parallel_degree", "1"},
                     {"checkpoint.enable", "false"},
                     {"checkpoint.folder", "\"checkpoint\""},
                     {"checkpoint.interval", "500"},
                     {"checkpoint.last_save_model_only", "true"},
                     {"checkpoint.export_dtype", "\"float32\""},
                     {"checkpoint.async_mode", "\"disabled\""},
                     {"activation_checkpoint.mode", "\"full\""},
                     {"compile.enable", "false"},
                     {"compile.components", "[\"model\", \"loss\"]"},
                     {"quantize.linear.float8.enable_fsdp_float8_all_gather", "false"},
                     {"quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", "false"},
                     {"quantize.linear.float8.filter_fqns", "[\"output\"]"},
                     {"validation.enable", "false"},
                     {"validation.dataset", "\"c4_validation\""},
                     {"validation.freq", "500"},
                     {"validation.steps", "1200"}};

Values with(const Values& changes) {
  auto values = changes;
  values.insert(kCommon.begin(), kCommon.end());
  return values;
}

const Values kDebug = with({{"job.description", "\"Llama 3 debug training\""},
                            {"job.print_config", "false"},
                            {"profiling.enable_profiling", "false"},
                            {"profiling.profile_freq", "10"},
                            {"profiling.enable_memory_snapshot", "false"},
                            {"profiling.save_memory_snapshot_folder", "\"memory_snapshot\""},
                            {"metrics.log_freq", "1"},
                            {"metrics.disable_color_printing", "false"},
                            {"metrics.enable_tensorboard", "false"},
                            {"metrics.enable_wandb", "false"},
                            {"model.flavor", "\"debugmodel\""},
                            {"model.hf_assets_path", "\"./tests/assets/tokenizer\""},
                            {"optimizer.lr", "8e-4"},
                            {"lr_scheduler.warmup_steps", "2"},
                            {"lr_scheduler.decay_ratio", "0.8"},
                            {"lr_scheduler.decay_type", "\"linear\""},
                            {"lr_scheduler.min_lr_factor", "0.0"},
                            {"training.local_batch_size", "8"},
                            {"training.seq_len", "2048"},
                            {"training.steps", "10"},
                            {"training.dataset", "\"c4_test\""},
                            {"parallelism.fsdp_reshard_after_forward", "\"default\""},
                            {"parallelism.tensor_parallel_degree", "1"},
                            {"parallelism.enable_async_tensor_parallel", "false"},
                            {"parallelism.pipeline_parallel_schedule", "\"Interleaved1F1B\""},
                            {"checkpoint.interval", "10"},
                            {"checkpoint.last_save_model_only", "false"},
                            {"activation_checkpoint.mode", "\"selective\""},
                            {"activation_checkpoint.selective_ac_option", "\"2\""},
                            {"validation.freq", "5"},
                            {"validation.steps", "10"}});
const Values k8B = with({{"job.description", "\"Llama 3 8B training\""},
                         {"model.flavor", "\"8B\""},
                         {"model.hf_assets_path", "\"./assets/hf/Llama-3.1-8B\""},
                         {"optimizer.lr", "3e-4"},
                         {"training.local_batch_size", "1"},
                         {"parallelism.tensor_parallel_degree", "1"},
                         {"activation_checkpoint.mode", "\"selective\""},
                         {"activation_checkpoint.selective_ac_option", "\"op\""}});
const Values k70B = with({{"job.description", "\"Llama 3 70B training\""},
                          {"model.flavor", "\"70B\""},
                          {"model.hf_assets_path", "\"./assets/hf/Llama-3.1-70B\""},
                          {"optimizer.lr", "1.5e-4"},
                          {"training.local_batch_size", "8"}});
const Values k405B = with({{"job.description", "\"Llama 3 405B training\""},
                           {"model.flavor", "\"405B\""},
                           {"model.hf_assets_path", "\"./assets/hf/Llama-3.1-405B\""},
                           {"model.converters", "[\"float8\"]"},
                           {"optimizer.lr", "8e-5"},
                           {"lr_scheduler.warmup_steps", "600"},
                           {"training.local_batch_size", "2"},
                           {"training.steps", "3000"},
                           {"parallelism.enable_async_tensor_parallel", "true"},
                           {"compile.enable", "true"},
                           {"quantize.linear.float8.enable_fsdp_float8_all_gather", "true"},
                           {"quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", "true"}});

std::string toml(const Values& values) {
  std::string text, section;
  for (const auto& [key, value] : values) {
    const auto dot = key.rfind('.');
    if (key.substr(0, dot) != section) text += fmt::format("[{}]\n", section = key.substr(0, dot));
    text += fmt::format("{} = {}\n", key.substr(dot + 1), value);
  }
  return text;
}

struct Read {
  Job job;
  std::vector<std::string> goes_on, refused;  ///< keys
};

Read read(const Values& values, bool is_dry, std::span<const Setting> overrides = {}) {
  JobReading reading{.is_dry = is_dry};
  Read result{.job = parse_job(toml(values), "job.toml", overrides, reading)};
  for (const auto& each : reading.unhonoured) {
    (each.refused ? result.refused : result.goes_on).push_back(each.key);
    EXPECT_EQ(each.refused, each.instead.empty()) << each.key;
  }
  return result;
}

/// Its default is another, and none of the files names it.
constexpr const char* kPrecision = "training.mixed_precision_param";

/// All of it, and no error.
TEST(TorchtitanFiles, AreReadByADryRunThatListsWhatIsNotHonoured) {
  const auto debug = read(kDebug, /*is_dry=*/true);
  EXPECT_THAT(debug.goes_on, ElementsAre(kPrecision));
  EXPECT_THAT(debug.refused, ElementsAre("training.dataset"));
  for (const auto& file : {k8B, k70B}) {
    const auto job = read(file, /*is_dry=*/true);
    EXPECT_THAT(job.goes_on, ElementsAre("model.hf_assets_path", kPrecision));
    EXPECT_THAT(job.refused, ElementsAre("training.dataset"));
  }
  const auto largest = read(k405B, /*is_dry=*/true);
  EXPECT_THAT(largest.goes_on, ElementsAre("compile.enable", "model.converters", "model.hf_assets_path", kPrecision));
  EXPECT_TRUE(largest.job.parallelism.enable_async_tensor_parallel);
  EXPECT_THAT(largest.refused, ElementsAre("training.dataset"));
  EXPECT_THAT(largest.job.model.converters, ElementsAre("quantize.linear.float8"));
  EXPECT_EQ(largest.job.parallelism.tensor_parallel_degree, 8);
  EXPECT_EQ(resolve(largest.job, {}).training.global_batch_size, 2);
}

/// What would change data is refused; all else goes on.
TEST(TorchtitanFiles, TrainOnDataThatThereIs) {
  const std::vector<Setting> data{command_line_setting("training.dataset_path", "c4.bin")};
  for (const auto& file : {kDebug, k8B, k70B, k405B}) {
    const auto message = lockstep::testing::message_of<RefusedJob>([&] { read(file, /*is_dry=*/false); });
    EXPECT_THAT(message,
                ::testing::EndsWith(" needs training.dataset_path: files of tokens, which lockstep data prepare "
                                    "makes of documents; nothing is downloaded."));
    EXPECT_EQ(message.find('\n'), message.npos) << "nothing else: " << message;
    const auto job = read(file, /*is_dry=*/false, data);
    EXPECT_THAT(job.refused, ElementsAre());
    EXPECT_EQ(job.job.training.dataset, "tokens");
    EXPECT_THAT(job.goes_on, ::testing::Contains("training.dataset"));
  }
}

TEST(TorchtitanFiles, AreRefusedWhereTheyWouldValidateOnOtherData) {
  auto file = with({{"validation.enable", "true"}});
  file.erase("training.dataset");
  EXPECT_THAT(lockstep::testing::message_of<RefusedJob>([&] { read(file, /*is_dry=*/false); }),
              ::testing::HasSubstr("validation.dataset = c4_validation needs validation.dataset_path"));
  EXPECT_THAT(read(file, /*is_dry=*/true).refused, ElementsAre("validation.dataset"));
}

TEST(TorchtitanFiles, WhatChangesBitsIsRefusedByARunAlone) {
  const auto file = with({{"training.dtype", "\"bfloat16\""}, {"training.dataset", "\"text\""}});
  EXPECT_THAT(lockstep::testing::message_of<RefusedJob>([&] { read(file, /*is_dry=*/false); }),
              ::testing::HasSubstr("training.dtype = bfloat16 asks for something that Lockstep does not support"));
  EXPECT_THAT(read(file, /*is_dry=*/true).refused, ElementsAre("training.dtype"));
}

TEST(TorchtitanFiles, ACopyInPinnedMemoryIsACopy) {
  const auto file = with({{"checkpoint.async_mode", "\"async_with_pinned_mem\""}, {"training.dataset", "\"text\""}});
  const auto job = read(file, /*is_dry=*/false);
  EXPECT_EQ(job.job.checkpoint.async_mode, "async");
  EXPECT_THAT(job.goes_on, ElementsAre("checkpoint.async_mode", kPrecision));
}

/// Only of jobs that name what is torchtitan's alone, and only what they leave to it.
TEST(TorchtitanFiles, DefaultsThatAreOthersAreTold) {
  const auto told = [](const Values& values) { return read(values, /*is_dry=*/false).goes_on; };
  const std::pair<std::string, std::string> theirs{"job.print_config", "true"};
  EXPECT_THAT(told({{"training.steps", "2"}}), ElementsAre());
  EXPECT_THAT(told({theirs}), ElementsAre("training.dataset", kPrecision, "activation_checkpoint.mode"));
  EXPECT_THAT(told({{"training.dataset", "\"c4\""}, {"training.dataset_path", "\"c4.bin\""}}),
              ElementsAre("training.dataset", kPrecision, "activation_checkpoint.mode"));
  EXPECT_THAT(told({theirs,
                    {"activation_checkpoint.mode", "\"none\""},
                    {kPrecision, "\"float32\""},
                    {"training.dataset", "\"text\""}}),
              ElementsAre());
  EXPECT_THAT(told({theirs,
                    {"activation_checkpoint.mode", "\"none\""},
                    {kPrecision, "\"float32\""},
                    {"parallelism.context_parallel_degree", "2"},
                    {"training.dataset", "\"text\""},
                    {"training.seq_len", "64"},
                    {"validation.enable", "true"}}),
              ElementsAre("parallelism.context_parallel_load_balancer", "validation.dataset", "validation.seq_len"));
  JobReading reading;
  const std::vector<Setting> on_the_command_line{command_line_setting("compile.enable", "true")};
  parse_job("", "job.toml", on_the_command_line, reading);
  EXPECT_EQ(reading.unhonoured.size(), 1U) << "which says nothing of whom the file was written for";
}

}  // namespace
}  // namespace lockstep::trainer
