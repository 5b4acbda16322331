#include "trainer/data/batch_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

/// A token tells its sample; sample 9 cannot be read.
class Counted final : public Dataset {
 public:
  int64_t samples() const override { return 100; }
  TokenBatch batch(int64_t start, int64_t count) const override {
    ++reads;
    if (start <= 9 && 9 < start + count) fail<FileError>("sample 9");
    TokenBatch batch{count, 1, {}, {}, start};
    for (int64_t i = start; i < start + count; ++i) batch.tokens.push_back(i), batch.labels.push_back(1000 + i);
    return batch;
  }
  mutable std::atomic<int> reads = 0;
};

TEST(BatchReader, GivesWhatIsAskedForInAnyOrder) {
  const Counted data;
  BatchReader reader(data, 2);
  for (const int64_t start : {0, 2, 4, 20, 22, 2}) {
    const auto batch = reader.take(start);
    EXPECT_EQ(batch.first_sample, start);
    EXPECT_EQ(batch.tokens, (std::vector<int64_t>{start, start + 1}));
  }
}

TEST(BatchReader, ReadsOneBatchAhead) {
  const Counted data;
  BatchReader reader(data, 2);
  reader.take(0);
  while (data.reads < 2) std::this_thread::yield();
  reader.take(2);
  while (data.reads < 3) std::this_thread::yield();
  EXPECT_EQ(data.reads, 3);
}

TEST(BatchReader, ReadsNoRowsButItsOwn) {
  const Counted data;
  const BatchReader reader(data, 6, {{5, 1}, {1, 2}, {2, 1}, {3, 0}});
  const auto batch = reader.read(5);  // its fifth row, sample 9, is another's
  EXPECT_EQ(batch.rows, 6);
  EXPECT_EQ(batch.seq_len, 1);
  EXPECT_EQ(batch.tokens, (std::vector<int64_t>{0, 6, 7, 0, 0, 10}));
  EXPECT_EQ(batch.labels, (std::vector<int64_t>{kIgnoredLabel, 1006, 1007, kIgnoredLabel, kIgnoredLabel, 1010}));
  EXPECT_EQ(data.reads, 2);
}

/// Only who asks for the batch hears of it.
TEST(BatchReader, AnErrorComesWithItsBatch) {
  const Counted data;
  BatchReader reader(data, 2);
  reader.take(4);
  EXPECT_EQ(reader.take(6).tokens[0], 6);
  EXPECT_THROW(reader.take(8), FileError);
  EXPECT_EQ(reader.take(10).tokens[0], 10);
}

}  // namespace
}  // namespace lockstep::trainer
