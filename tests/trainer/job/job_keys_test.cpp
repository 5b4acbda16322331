#include "trainer/job/job_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "core/files/atomic_file.h"
#include "trainer/job/job_reference.h"
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
    bool operator()(const std::optional<int64_t>& value) const { return !value || (*this)(*value); }
    bool operator()(const std::optional<double>& value) const { return !value || (*this)(*value); }
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
  EXPECT_EQ(find_torchtitan_key("quantize.linear.mx.recipe_name")->pattern, "quantize.*");
  EXPECT_EQ(find_torchtitan_key("training.dataloaders"), nullptr);
}

TEST(TorchtitanKeys, NeutralValuesAreSplitAtBars) {
  const TorchtitanKey key{"a.b", "|x|y"};
  EXPECT_EQ(neutral_values(key), (std::vector<std::string_view>{"", "x", "y"}));
  EXPECT_TRUE(asks_for_nothing(key, ""));
  EXPECT_TRUE(asks_for_nothing(key, "y"));
  EXPECT_FALSE(asks_for_nothing(key, "x|y"));
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
