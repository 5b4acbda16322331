#include "trainer/data/text_dataset.h"

#include <algorithm>

#include "core/elementary/elementary.h"
#include "core/error.h"
#include "rng/permutation.h"
#include "rng/stream.h"
#include "trainer/data/data_file.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kScanBytes = 1 << 20;
constexpr int64_t kCountedBytes = 256 << 20;  ///< a fraction of a second; a text of terabytes would be read for hours

/// Calls `visit(position, bytes)` for successive blocks of the file's first `most` bytes.
template <class Visit>
void scan(const RandomAccessFile& file, int64_t most, const Visit& visit) {
  std::vector<std::byte> block;
  const auto end = std::min(file.size(), most);
  for (int64_t at = 0; at < end; at += kScanBytes) {
    block.resize(static_cast<size_t>(std::min(kScanBytes, end - at)));
    file.read(at, block);
    visit(at, std::span<const std::byte>(block));
  }
}

}  // namespace

TextDataset::TextDataset(const std::string& path, int64_t seq_len, int64_t vocabulary, uint64_t seed)
    : file_(open_dataset(path)), seq_len_(seq_len), samples_((file_.size() - 1) / seq_len), seed_(seed) {
  if (bytes() == 0) fail<BadInput>("dataset {}: is empty.", path);
  if (samples_ == 0)
    fail<BadInput>("dataset {}: {} bytes are less than one sample of training.seq_len + 1 = {}.", path, bytes(),
                   seq_len + 1);
  check_vocabulary(vocabulary);
}

void TextDataset::check_vocabulary(int64_t vocabulary) const {
  if (vocabulary > 255) return;
  scan(file_, file_.size(), [&](int64_t at, std::span<const std::byte> block) {
    const auto outside = [&](std::byte token) { return std::to_integer<int64_t>(token) >= vocabulary; };
    const auto bad = std::find_if(block.begin(), block.end(), outside);
    if (bad != block.end())
      fail<BadInput>("dataset {}: byte {} is token {}, outside the model's vocabulary of {}.", file_.path(),
                     at + (bad - block.begin()), std::to_integer<int>(*bad), vocabulary);
  });
}

int64_t TextDataset::sample_at(int64_t global_index) const {
  LOCKSTEP_CHECK(global_index >= 0, "global sample index {}", global_index);
  const auto epoch = global_index / samples_;
  const auto stream = rng::stream_of({.step = static_cast<uint64_t>(epoch), .module_path = "data order"});
  const rng::Permutation order(rng::Key{seed_}, stream, static_cast<uint64_t>(samples_));
  return static_cast<int64_t>(order(static_cast<uint64_t>(global_index % samples_)));
}

TokenBatch TextDataset::batch(int64_t start, int64_t count) const {
  const auto values = static_cast<size_t>(count * seq_len_);
  TokenBatch batch{count, seq_len_, std::vector<int64_t>(values), std::vector<int64_t>(values), start};
  std::vector<std::byte> row(static_cast<size_t>(seq_len_ + 1));
  const auto as_token = [](std::byte byte) { return std::to_integer<int64_t>(byte); };
  for (int64_t r = 0; r < count; ++r) {
    file_.read(sample_at(start + r) * seq_len_, row);
    std::transform(row.begin(), row.end() - 1, batch.tokens.begin() + r * seq_len_, as_token);
    std::transform(row.begin() + 1, row.end(), batch.labels.begin() + r * seq_len_, as_token);
  }
  return batch;
}

std::vector<int64_t> byte_counts(const std::string& path) {
  std::vector<int64_t> counts(256);
  scan(open_dataset(path), kCountedBytes, [&](int64_t, std::span<const std::byte> block) {
    for (const auto byte : block) ++counts[std::to_integer<size_t>(byte)];
  });
  return counts;
}

double unigram_entropy(const std::string& path) {
  const auto counts = byte_counts(path);
  int64_t total = 0;
  for (const auto count : counts) total += count;
  if (total == 0) fail<BadInput>("dataset {}: is empty.", path);
  double entropy = 0;
  for (const auto count : counts) {
    const auto share = static_cast<double>(count) / static_cast<double>(total);
    if (count > 0) entropy -= share * elementary::log(share);
  }
  return entropy;
}

}  // namespace lockstep::trainer
