#include "trainer/data/tokens_dataset.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/error.h"
#include "tests/support/token_files.h"
#include "trainer/data/text_dataset.h"

namespace lockstep::trainer {
namespace {

using testing::counting_ids;
using testing::raw;
using testing::write_tokens;

template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TokensDataset::Options options(std::vector<DataSource> sources, int64_t seq_len = 10, uint64_t seed = 7) {
  return {.sources = std::move(sources), .seq_len = seq_len, .vocabulary = 65536, .seed = seed};
}

/// A token tells where it is from: files hold 1000, 2000, ... and on.
TEST(TokensDataset, SamplesOfSeveralFilesAreEachVisitedOnceInAnEpoch) {
  const TemporaryFolder folder;
  const auto a = folder.write("a.bin", raw(counting_ids(101, 1000)));
  const auto b = folder.write("b.bin", raw(counting_ids(10, 2000)));  // no sample: seq_len + 1 ids are one
  const auto c = folder.write("c.bin", raw(counting_ids(39, 3000)));
  const TokensDataset data(options({{"", {a, b, c}}}));
  EXPECT_EQ(data.samples(), 13);
  std::set<int64_t> firsts;
  const auto batch = data.batch(0, 13);
  for (size_t r = 0; r < 13; ++r) {
    firsts.insert(batch.tokens[r * 10]);
    for (size_t t = 0; t < 10; ++t) {
      EXPECT_EQ(batch.tokens[r * 10 + t], batch.tokens[r * 10] + static_cast<int64_t>(t));
      EXPECT_EQ(batch.labels[r * 10 + t], batch.tokens[r * 10 + t] + 1);
    }
  }
  std::set<int64_t> expected{3000, 3010, 3020};
  for (int64_t k = 0; k < 10; ++k) expected.insert(1000 + 10 * k);
  EXPECT_EQ(firsts, expected);
  EXPECT_TRUE(batch.positions.empty());
}

/// The order of one file's samples is that of a text's.
TEST(TokensDataset, OfOneFileComeInTheOrderOfATextsSamples) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.bin", raw(counting_ids(4001)));
  const auto text = folder.write("text", std::string(4001, 'x'));
  const TokensDataset data(options({{"", {path}}}));
  const TextDataset same(text, 10, 256, 7);
  for (const int64_t start : {0, 395, 1201}) {
    const auto batch = data.batch(start, 10);
    for (int64_t r = 0; r < 10; ++r)
      EXPECT_EQ(batch.tokens[static_cast<size_t>(r) * 10], same.sample_at(start + r) * 10);
  }
  EXPECT_NE(data.batch(0, 9).tokens, TokensDataset(options({{"", {path}}}, 10, 8)).batch(0, 9).tokens);
}

/// Of each round of 5 samples 3 are of one source and 2 of the other; each source's epochs are whole.
TEST(TokensDataset, AMixtureKeepsItsProportionsAndItsSourcesEpochs) {
  const TemporaryFolder folder;
  const auto a = folder.write("a.bin", raw(counting_ids(61, 1000))),
             b = folder.write("b.bin", raw(counting_ids(71, 2000)));
  const TokensDataset data(options({{"", {a}, 3}, {"", {b}, 2}}));
  const auto batch = data.batch(0, 350);
  std::map<int64_t, int64_t> visits;
  std::set<std::vector<bool>> rounds;
  for (size_t round = 0; round < 70; ++round) {
    std::vector<bool> is_first;
    for (size_t r = 5 * round; r < 5 * round + 5; ++r) {
      ++visits[batch.tokens[10 * r]];
      is_first.push_back(batch.tokens[10 * r] < 2000);
    }
    EXPECT_EQ(std::count(is_first.begin(), is_first.end(), true), 3);
    rounds.insert(is_first);
  }
  EXPECT_GT(rounds.size(), 5u);
  for (int64_t k = 0; k < 6; ++k) EXPECT_EQ(visits[1000 + 10 * k], 35);
  for (int64_t k = 0; k < 7; ++k) EXPECT_EQ(visits[2000 + 10 * k], 20);
  const auto part = data.batch(123, 7);
  EXPECT_TRUE(std::equal(part.tokens.begin(), part.tokens.end(), batch.tokens.begin() + 1230));
}

/// Borders at a row's first token, at its last, and two in a row; a document of one token.
TEST(TokensDataset, PackedDocumentsHavePositionsOfTheirOwnAndNoLossAcrossBorders) {
  const TemporaryFolder folder;
  const auto path = write_tokens(folder, "a", counting_ids(17), {0, 3, 4, 8, 15});
  auto wanted = options({{"", {path}}}, 8);
  wanted.packs_documents = true;
  const auto batch = TokensDataset(wanted).batch(0, 2);
  for (size_t r = 0; r < 2; ++r) {
    const auto row = [&](const std::vector<int64_t>& values) {
      return std::vector<int64_t>(values.begin() + static_cast<ptrdiff_t>(8 * r),
                                  values.begin() + static_cast<ptrdiff_t>(8 * r + 8));
    };
    const bool is_first = batch.tokens[8 * r] == 0;
    EXPECT_EQ(row(batch.positions), is_first ? (std::vector<int64_t>{0, 1, 2, 0, 0, 1, 2, 3})
                                             : (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 0}));
    EXPECT_EQ(row(batch.labels),
              is_first ? (std::vector<int64_t>{1, 2, kIgnoredLabel, kIgnoredLabel, 5, 6, 7, kIgnoredLabel})
                       : (std::vector<int64_t>{9, 10, 11, 12, 13, 14, kIgnoredLabel, 16}));
  }
}

TEST(TokensDataset, ARowInsideOfADocumentBeginsAtPosition0) {
  const TemporaryFolder folder;
  auto wanted = options({{"", {write_tokens(folder, "a", counting_ids(9), {0})}}}, 4);
  wanted.packs_documents = true;
  EXPECT_EQ(TokensDataset(wanted).batch(0, 2).positions, (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(TokensDataset, WhatIsMissingIsBadInput) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.bin", raw(counting_ids(10)));
  EXPECT_EQ(refusal([&] {
              TokensDataset(options({{"a*", {path}}}));
            }),
            "dataset a*: 10 tokens in 1 files hold no sample of training.seq_len + 1 = 11.");
  auto wanted = options({{"", {path}}}, 5);
  wanted.packs_documents = true;
  EXPECT_EQ(refusal([&] { TokensDataset data(wanted); }),
            "dataset " + path +
                ": nothing says where its documents begin, which training.pack_documents needs. Make it with "
                "lockstep data prepare or adopt.");
}

TEST(TokensDataset, BytesOfATokenAreTheMixtures) {
  const TemporaryFolder folder;
  const auto a = write_tokens(folder, "a", counting_ids(20), {}, 65536, 80);
  const auto b = write_tokens(folder, "b", counting_ids(40), {}, 65536, 80);
  const auto bare = folder.write("c.bin", raw(counting_ids(20)));
  EXPECT_EQ(TokensDataset(options({{"", {a, b}}})).bytes_per_token(), 160.0 / 60);
  EXPECT_EQ(TokensDataset(options({{"", {a}, 3}, {"", {b}, 1}})).bytes_per_token(), (3 * 4.0 + 2.0) / 4);
  EXPECT_EQ(TokensDataset(options({{"", {a, bare}}})).bytes_per_token(), std::nullopt);
}

TEST(TokensDigest, IsOfWhatDecidesTheSamples) {
  const TemporaryFolder folder;
  const auto a = write_tokens(folder, "a", counting_ids(20), {0, 5}), b = folder.write("b.bin", raw(counting_ids(9)));
  std::set<std::string> all{tokens_digest({{"", {a, b}}}, false), tokens_digest({{"", {b, a}}}, false),
                            tokens_digest({{"", {a}}, {"", {b}}}, false),
                            tokens_digest({{"", {a}, 2}, {"", {b}}}, false), tokens_digest({{"", {a, b}}}, true)};
  EXPECT_EQ(all.size(), 5u);
  write_tokens(folder, "a", counting_ids(20), {0, 6});
  EXPECT_TRUE(all.contains(tokens_digest({{"", {a, b}}}, false)));
  EXPECT_FALSE(all.contains(tokens_digest({{"", {a, b}}}, true)));
}

}  // namespace
}  // namespace lockstep::trainer
