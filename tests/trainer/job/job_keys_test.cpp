#include "trainer/job/job_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "core/files/atomic_file.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_reference.h"
#include "trainer/job/job_setting.h"
#include "trainer/job/torchtitan_keys.h"

namespace lockstep::trainer {
namespace {

TEST(JobKeys, NoKeyStandsTwiceOrInBothTables) {
  std::set<std::string> seen;
  for (const auto& key : job_keys()) EXPECT_TRUE(seen.insert(key.dotted()).second) << key.dotted();
  for (const auto& key : torchtitan_keys()) EXPECT_TRUE(seen.insert(std::string(key.pattern)).second) << key.pattern;
}

TEST(JobKeys, EveryRowIsFoundUnderItsNameAndPointsToAMemberOfItsOwn) {
  std::set<const void*> members;
  Job job;
  for (const auto& key : job_keys()) {
    EXPECT_EQ(find_job_key(key.dotted()), &key);
    const auto* member = std::visit([&](auto field) { return static_cast<const void*>(&field(job)); }, key.field);
    EXPECT_TRUE(members.insert(member).second) << key.dotted() << " shares its member with another row";
    EXPECT_FALSE(key.help.empty()) << key.dotted();
  }
}

TEST(JobKeys, RowsOfASectionStandTogetherInTheOrderOfSections) {
  auto section = job_sections().begin();
  for (const auto& key : job_keys()) {
    while (section != job_sections().end() && *section != key.section) ++section;
    ASSERT_NE(section, job_sections().end()) << key.dotted();
  }
}

TEST(JobKeys, EveryDefaultIsAccepted) {
  struct Accepts {
    const Allowed& allowed;
    bool operator()(bool) const { return true; }
    bool operator()(int64_t value) const { return allowed.accepts(static_cast<double>(value)); }
    bool operator()(double value) const { return allowed.accepts(value); }
    bool operator()(const std::string& value) const { return allowed.accepts(value); }
    bool operator()(const std::vector<std::string>& values) const {
      return std::all_of(values.begin(), values.end(), [&](const auto& value) { return allowed.accepts(value); });
    }
    bool operator()(const std::vector<ParameterGroup>&) const { return true; }
    bool operator()(const std::vector<std::vector<std::string>>&) const { return true; }
    bool operator()(const std::optional<int64_t>& value) const { return !value || (*this)(*value); }
    bool operator()(const std::optional<double>& value) const { return !value || (*this)(*value); }
    bool operator()(const std::optional<bool>&) const { return true; }
  };
  Job job;
  for (const auto& key : job_keys())
    EXPECT_TRUE(std::visit([&](auto field) { return Accepts{key.allowed}(field(job)); }, key.field)) << key.dotted();
}

TEST(JobKeys, NumbersKeepTheirBitsAsText) {
  EXPECT_EQ(toml_number(1.0), "1.0");
  EXPECT_EQ(toml_number(8e-4), "0.0008");
  EXPECT_EQ(toml_number(1e-8), "1e-08");
  EXPECT_EQ(toml_number(1e300), "1e+300");
  EXPECT_EQ(toml_string("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
}

TEST(TorchtitanKeys, ExactRowsWinOverPatterns) {
  EXPECT_EQ(find_torchtitan_key("training.dataloader.num_workers")->neutral, "0");
  EXPECT_EQ(find_torchtitan_key("training.dataloader.pin_memory")->neutral, "*");
  EXPECT_EQ(find_torchtitan_key("quantize.grouped_mm.mx.recipe_name")->pattern, "quantize.grouped_mm.*");
  EXPECT_EQ(find_torchtitan_key("training.dataloaders"), nullptr);
}

TEST(TorchtitanKeys, NeutralValuesAreSplitAtBars) {
  const TorchtitanKey key{"a.b", "|x|y"};
  EXPECT_EQ(neutral_values(key), (std::vector<std::string_view>{"", "x", "y"}));
  EXPECT_TRUE(asks_for_nothing(key, ""));
  EXPECT_TRUE(asks_for_nothing(key, "y"));
  EXPECT_FALSE(asks_for_nothing(key, "x|y"));
}

TEST(TorchtitanDifferences, AreOfKeysThatExistAndStandInTheReference) {
  std::set<std::string_view> seen;
  const auto reference = job_reference_markdown(), help = job_reference_help();
  for (const auto& difference : torchtitan_differences()) {
    const auto key = difference.key;
    EXPECT_TRUE(seen.insert(key).second) << key;
    EXPECT_TRUE(find_job_key(key) || find_torchtitan_key(key)) << key;
    EXPECT_NE(reference.find(difference_text(key) + " |"), reference.npos) << key;
    EXPECT_NE(!find_job_key(key), help.find(difference_text(key) + "\n") != help.npos) << key;
  }
  EXPECT_EQ(difference_text("optimizer.weight_decay"), "");
}

std::vector<std::string> differences(const Job& asked) { return differences_in(asked, resolve(asked, {})); }

TEST(TorchtitanDifferences, AreToldWhereTheyBearOnTheJob) {
  Job job;
  EXPECT_TRUE(differences(job).empty());
  job.parallelism.data_parallel_shard_degree = 2;
  job.training.local_batch_size = 6;
  job.training.global_batch_size = 24;
  EXPECT_EQ(differences(job), (std::vector<std::string>{"training.local_batch_size 6 is lowered to 4: 24 samples on 2 "
                                                        "data-parallel ranks are summed in complete subtrees"}));
  job.numerics.mode = kNativeMode;
  EXPECT_TRUE(differences(job).empty());
  auto asked = job;
  asked.training.local_batch_size = 8;  // and a checkpoint that was saved with a step of 24 samples
  EXPECT_EQ(
      differences_in(asked, resolve(job, {})),
      (std::vector<std::string>{"training.local_batch_size 8 is lowered to 6: 24 samples on 2 data-parallel ranks "
                                "do not divide into more"}));
}

TEST(TorchtitanDifferences, OfContextParallelAndOfResharding) {
  Job job;
  job.parallelism.context_parallel_degree = 2;
  job.parallelism.data_parallel_shard_degree = 2;
  job.parallelism.fsdp_reshard_after_forward = "never";
  EXPECT_EQ(differences(job),
            (std::vector<std::string>{"no load balancer of context parallelism: late ranks attend to more keys"}));
  job.parallelism.context_parallel_load_balancer = kHeadTail;
  EXPECT_EQ(differences(job), std::vector<std::string>{});
  job.parallelism.context_parallel_rotate_method = kRing;
  job.training.pack_documents = true;
  EXPECT_EQ(differences(job), std::vector<std::string>{});
  job.parallelism.context_parallel_rotate_method = "allgather";
  job.model.attention_dropout = 0.1;
  EXPECT_EQ(differences(job), std::vector<std::string>{});
  job.model.attention_dropout = 0;
  job.parallelism.context_parallel_degree = 1;
  job.parallelism.enable_async_tensor_parallel = true;
  EXPECT_EQ(differences(job), std::vector<std::string>{});
  job.numerics.mode = kNativeMode;
  job.training.device = "cuda";
  EXPECT_EQ(differences(job), (std::vector<std::string>{"products wait for their collectives between GPUs"}));
  job.training.device = "cpu";
  job.activation_checkpoint.mode = "full";
  EXPECT_EQ(differences(job), (std::vector<std::string>{"parameters of recomputed layers are gathered again, although "
                                                        "fsdp_reshard_after_forward is \"never\""}));
}

// After changing a table: LOCKSTEP_UPDATE_DOCS=1 test_trainer --gtest_filter=JobReference.*
TEST(JobReference, TheDocumentIsTheOneGeneratedFromTheTables) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/docs/job.md";
  if (std::getenv("LOCKSTEP_UPDATE_DOCS")) write_file_atomically(path, job_reference_markdown());
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(text, job_reference_markdown()) << "run with LOCKSTEP_UPDATE_DOCS=1 to write docs/job.md anew";
}

TEST(JobReference, HelpNamesEveryKey) {
  const auto help = job_reference_help();
  for (const auto& key : job_keys()) EXPECT_NE(help.find("--" + key.dotted() + " ("), help.npos) << key.dotted();
}

}  // namespace
}  // namespace lockstep::trainer
