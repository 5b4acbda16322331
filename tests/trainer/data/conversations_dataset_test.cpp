#include "trainer/data/conversations_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/message_of.h"
#include "tests/support/token_files.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

using testing::counting_ids;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::raw;

constexpr int64_t kNone = kIgnoredLabel;

/// Conversations of tokens 100, 101, ... that begin at the borders; 1 in the mask is learned.
std::string write_conversations(const TemporaryFolder& folder, const std::string& name, const std::string& mask,
                                const std::vector<uint64_t>& borders, const char* kind = "conversations") {
  const auto path = testing::write_tokens(folder, name, counting_ids(mask.size(), 100), borders);
  std::string bytes = mask;
  for (auto& byte : bytes) byte = byte == '1';
  folder.write(name + ".mask", bytes);
  auto sidecar = *read_sidecar(path);
  sidecar.kind = kind, sidecar.mask_digest = digest(bytes).text();
  write_sidecar(path, sidecar);
  return path;
}

ConversationsDataset::Options options_of(const std::string& path, int64_t seq_len = 6) {
  return {.sources = {{path, {path}}}, .seq_len = seq_len, .vocabulary = 65536, .seed = 7};
}

/// By first token: a row's tokens and labels, and positions if there are any.
std::map<int64_t, std::vector<std::vector<int64_t>>> rows_of(const TokenBatch& batch) {
  std::map<int64_t, std::vector<std::vector<int64_t>>> rows;
  const auto length = batch.seq_len;
  for (int64_t r = 0; r < batch.rows; ++r) {
    auto& row = rows[batch.tokens[static_cast<size_t>(r * length)]];
    for (const auto* values : {&batch.tokens, &batch.labels, &batch.positions})
      if (!values->empty()) row.emplace_back(values->begin() + r * length, values->begin() + (r + 1) * length);
  }
  return rows;
}

TEST(ConversationsDataset, ASampleIsAConversationAndLabelsAreWhatIsLearned) {
  const TemporaryFolder folder;
  const auto path = write_conversations(folder, "a", "001100110111", {0, 4, 5, 9});
  const ConversationsDataset data(options_of(path));
  EXPECT_EQ(data.samples(), 4);
  const auto rows = rows_of(data.batch(0, 4));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_THAT(rows.at(100),
              ElementsAre(ElementsAre(100, 101, 102, 0, 0, 0), ElementsAre(kNone, 102, 103, kNone, kNone, kNone)));
  // Of one token: there is nothing behind it.
  EXPECT_THAT(rows.at(0),
              ElementsAre(ElementsAre(0, 0, 0, 0, 0, 0), ElementsAre(kNone, kNone, kNone, kNone, kNone, kNone)));
  EXPECT_THAT(rows.at(105),
              ElementsAre(ElementsAre(105, 106, 107, 0, 0, 0), ElementsAre(106, 107, kNone, kNone, kNone, kNone)));
  EXPECT_THAT(rows.at(109),
              ElementsAre(ElementsAre(109, 110, 0, 0, 0, 0), ElementsAre(110, 111, kNone, kNone, kNone, kNone)));
}

TEST(ConversationsDataset, PackedAreNeighboursThatFitEachByItself) {
  const TemporaryFolder folder;
  const auto path = write_conversations(folder, "a", "0111011011111", {0, 4, 7, 10});
  auto options = options_of(path, 5);
  options.packs_documents = true;
  const ConversationsDataset data(options);
  EXPECT_EQ(data.samples(), 2);
  const auto rows = rows_of(data.batch(0, 2));
  EXPECT_THAT(rows.at(100), ElementsAre(ElementsAre(100, 101, 102, 104, 105), ElementsAre(101, 102, 103, 105, 106),
                                        ElementsAre(0, 1, 2, 0, 1)));
  EXPECT_THAT(rows.at(107), ElementsAre(ElementsAre(107, 108, 110, 111, 0), ElementsAre(108, 109, 111, 112, kNone),
                                        ElementsAre(0, 1, 0, 1, 0)));
}

TEST(ConversationsDataset, PairsStayTogetherInEveryEpoch) {
  const TemporaryFolder folder;
  const auto path =
      write_conversations(folder, "a", std::string(40, '1'), {0, 3, 6, 10, 15, 20, 25, 30, 33, 37}, "preferences");
  auto options = options_of(path);
  options.pairs = true;
  const ConversationsDataset data(options);
  EXPECT_EQ(data.samples(), 10);
  const std::map<int64_t, int64_t> rejected{{100, 103}, {106, 110}, {115, 120}, {125, 130}, {133, 137}};
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto batch = data.batch(epoch * 10, 10);
    std::set<int64_t> seen;
    for (size_t r = 0; r < 10; r += 2) {
      seen.insert(batch.tokens[r * 6]);
      EXPECT_EQ(batch.tokens[(r + 1) * 6], rejected.at(batch.tokens[r * 6]));
    }
    EXPECT_EQ(seen.size(), 5u);
  }
  // A batch may begin with the second of a pair.
  EXPECT_EQ(data.batch(3, 1).tokens[0], data.batch(0, 4).tokens[18]);
}

TEST(ConversationsDataset, WhatDoesNotFitIsNamed) {
  const TemporaryFolder folder;
  const auto path = write_conversations(folder, "a", "0111011011", {0, 4, 7});
  const auto problem = [&](const ConversationsDataset::Options& options) {
    return message_of<BadInput>([&] { ConversationsDataset data(options); });
  };
  EXPECT_THAT(problem(options_of(path, 2)),
              HasSubstr("conversation 0 has 4 tokens, more than training.seq_len + 1 = 3. Raise it, or prepare"));
  EXPECT_EQ(problem(options_of(path, 3)), "no such error");
  auto pairs = options_of(path);
  pairs.pairs = true;
  EXPECT_THAT(problem(pairs), HasSubstr("holds conversations, not preferences"));
  const auto texts = testing::write_tokens(folder, "texts", counting_ids(9), {0, 4});
  EXPECT_THAT(problem(options_of(texts)), HasSubstr("holds texts, not conversations"));
  folder.write("a.mask", std::string(9, '\1'));
  EXPECT_THAT(problem(options_of(path)), HasSubstr("a.mask has 9 bytes, one for each of 10 tokens"));
  folder.write("a.mask", std::string(10, '\1'));
  EXPECT_THAT(problem(options_of(path)), HasSubstr("a.mask is not the file that the sidecar is of"));
  std::filesystem::remove(folder.file("a.mask"));
  EXPECT_THAT(problem(options_of(path)), HasSubstr("its mask"));
  auto odd = *read_sidecar(path);
  odd.kind = "preferences";
  write_sidecar(path, odd);
  EXPECT_THAT(problem(options_of(path)), HasSubstr("an even number: preferences are pairs"));
}

TEST(ConversationsDataset, LossAndDataGoTogether) {
  const auto problem = [](const std::string& text) {
    return message_of<BadInput>(
        [&] { resolve(parse_job("[training]\ndataset_path = \"x\"\n" + text, "job.toml"), {}); });
  };
  EXPECT_THAT(problem("loss = \"dpo\"\n"), HasSubstr("dpo and preferences go together"));
  EXPECT_THAT(problem("dataset = \"preferences\"\n"), HasSubstr("dpo and preferences go together"));
  EXPECT_THAT(problem("dataset = \"preferences\"\nloss = \"dpo\"\n"), HasSubstr("needs lora.rank"));
  EXPECT_THAT(problem("dpo_beta = 0.2\n"), HasSubstr("training.dpo_beta is of training.loss \"dpo\""));
  const std::string dpo = "dataset = \"preferences\"\nloss = \"dpo\"\nlocal_batch_size = 3\n[lora]\nrank = 2\n";
  EXPECT_EQ(problem(dpo), "no such error");
  const auto job = resolve(parse_job("[training]\ndataset_path = \"x\"\n" + dpo, "job.toml"), {});
  EXPECT_THAT(message_of<BadInput>([&] { derive_batching(job, parse_mesh("dp_shard=3")); }),
              HasSubstr("has 1 samples of the global batch of 3 to a rank and microbatch; pairs need an even number"));
}

}  // namespace
}  // namespace lockstep::trainer
