#include "trainer/data/batch_reader.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

/// The same rows, each once.
std::vector<Range> merged(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
  std::vector<Range> apart;
  for (const auto& range : ranges) {
    if (range.length == 0) continue;
    if (!apart.empty() && range.start <= apart.back().end())
      apart.back().length = std::max(apart.back().end(), range.end()) - apart.back().start;
    else
      apart.push_back(range);
  }
  return apart;
}

void put(const std::vector<int64_t>& part, int64_t at, std::vector<int64_t>& whole) {
  std::copy(part.begin(), part.end(), whole.begin() + at);
}

}  // namespace

BatchReader::BatchReader(const Dataset& data, int64_t rows, std::vector<Range> own)
    : data_(data), rows_(rows), own_(own.empty() ? std::vector<Range>{{0, rows}} : merged(std::move(own))) {
  LOCKSTEP_CHECK(!own_.empty() && own_.front().start >= 0 && own_.back().end() <= rows);
}

TokenBatch BatchReader::read(int64_t start) const {
  if (own_.front() == Range{0, rows_}) return data_.batch(start, rows_);
  TokenBatch whole{.rows = rows_, .first_sample = start};
  for (const auto& range : own_) {
    const auto part = data_.batch(start + range.start, range.length);
    const auto values = static_cast<size_t>(rows_ * part.seq_len);
    whole.seq_len = part.seq_len;
    whole.tokens.resize(values), whole.labels.resize(values, kIgnoredLabel);
    put(part.tokens, range.start * part.seq_len, whole.tokens);
    put(part.labels, range.start * part.seq_len, whole.labels);
    if (part.positions.empty()) continue;
    whole.positions.resize(values);
    put(part.positions, range.start * part.seq_len, whole.positions);
  }
  return whole;
}

TokenBatch BatchReader::take(int64_t start) {
  const bool is_ahead = ahead_ && ahead_->start == start;
  auto batch = is_ahead ? ahead_->batch.get() : read(start);
  ahead_.emplace(
      Ahead{start + rows_, std::async(std::launch::async, [this, next = start + rows_] { return read(next); })});
  return batch;
}

}  // namespace lockstep::trainer
