#include "trainer/verify/suite_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/small_models.h"
#include "trainer/verify/batch_check.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kVocabulary = 29;

TokenBatch batch_of(int64_t step) { return suite_batch(testing::small_job(), kVocabulary, step); }

/// Of a row: how many labels count.
std::vector<int64_t> labelled(const TokenBatch& batch) {
  std::vector<int64_t> counts;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const auto* first = batch.labels.data() + row * batch.seq_len;
    counts.push_back(std::count_if(first, first + batch.seq_len, [](int64_t label) { return label != kIgnoredLabel; }));
  }
  return counts;
}

TEST(SuiteBatch, AsksForAll) {
  std::set<int64_t> tokens;
  for (int64_t step = 1; step <= 20; ++step) {
    const auto batch = batch_of(step);
    ASSERT_EQ(batch.tokens.size(), batch.labels.size());
    ASSERT_EQ(static_cast<int64_t>(batch.tokens.size()), batch.rows * batch.seq_len);
    for (const int64_t token : batch.tokens) {
      ASSERT_GE(token, 0);
      ASSERT_LT(token, kVocabulary);
    }
    for (const int64_t label : batch.labels) ASSERT_TRUE(label == kIgnoredLabel || (label >= 0 && label < kVocabulary));
    tokens.insert(batch.tokens.begin(), batch.tokens.end());
    const auto counts = labelled(batch);
    EXPECT_LE(*std::min_element(counts.begin(), counts.end()), 1) << "a row is silent";
    EXPECT_GT(std::set(counts.begin(), counts.end()).size(), 3u) << "rows differ";
    EXPECT_TRUE(compare_batches(batch, batch_of(step)).agrees()) << "the same again";
    EXPECT_FALSE(compare_batches(batch, batch_of(step + 1)).agrees());
  }
  EXPECT_EQ(static_cast<int64_t>(tokens.size()), kVocabulary);
}

TEST(SuiteBatch, OfOneRowIsNotSilent) {
  auto job = testing::small_job();
  job.training.global_batch_size = 1;
  int64_t labels = 0;
  for (int64_t step = 1; step <= 20; ++step) labels += labelled(suite_batch(job, kVocabulary, step)).at(0);
  EXPECT_GT(labels, 20 * job.training.seq_len / 3);
}

TEST(SuiteBatch, HasDocumentsWhereTheJobPacksThem) {
  auto job = testing::small_job();
  EXPECT_TRUE(suite_batch(job, kVocabulary, 1).positions.empty());
  job.training.pack_documents = true;
  const auto batch = suite_batch(job, kVocabulary, 1);
  ASSERT_EQ(batch.positions.size(), batch.tokens.size());
  for (size_t i = 0; i < batch.positions.size(); ++i) {
    const bool goes_on = i % 12 > 0 && batch.positions[i] == batch.positions[i - 1] + 1;
    EXPECT_TRUE(batch.positions[i] == 0 || goes_on) << i;
  }
  auto wrong = batch;
  wrong.positions[25] = 7;
  EXPECT_EQ(compare_batches(batch, wrong).beyond.at(0).kind, "position");
  wrong.positions.clear();
  EXPECT_FALSE(compare_batches(batch, wrong).agrees());
}

TEST(BatchCheck, NamesTheFirstOther) {
  const auto right = batch_of(1);
  const auto text_of = [&](const std::function<void(TokenBatch&)>& change) {
    auto wrong = right;
    change(wrong);
    const auto result = compare_batches(right, wrong);
    return result.agrees() ? std::string() : result.beyond[0].text();
  };
  EXPECT_EQ(text_of([](TokenBatch&) {}), "");
  EXPECT_EQ(text_of([](TokenBatch& batch) { batch.first_sample = 7; }),
            "first sample of the batch = 7, the data: 0 (relative 1.0e+00; 1 of 1 elements wrong)");
  const auto moved = text_of(
      [](TokenBatch& batch) { std::rotate(batch.tokens.begin(), batch.tokens.begin() + 12, batch.tokens.end()); });
  EXPECT_TRUE(moved.starts_with("token of the batch[0, 1] = ")) << moved;
  const auto label = text_of([](TokenBatch& batch) { batch.labels[25] = 3; });
  EXPECT_TRUE(label.starts_with("label of the batch[2, 1] = 3, the data: ")) << label;
  EXPECT_TRUE(text_of([](TokenBatch& batch) { batch.labels.pop_back(); }).starts_with("labels of the batch = 143"));
}

}  // namespace
}  // namespace lockstep::trainer
