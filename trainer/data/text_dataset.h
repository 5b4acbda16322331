#pragma once
#include <string>
#include <vector>

#include "core/files/random_access_file.h"
#include "trainer/data/dataset.h"

namespace lockstep::trainer {

/// The bytes of a text file, one token a byte.
///
/// Sample k is the seq_len + 1 bytes from k * seq_len on: neighbours share one byte, the label of one's last token and
/// the other's first token. Samples are visited epoch by epoch, each epoch in an order of its own that is a function of
/// (seed, epoch) alone: what comes at global sample index i never depends on ranks, batches or earlier reads.
class TextDataset final : public Dataset {
 public:
  /// Opens and scans the file. BadInput when it is missing, empty or shorter than one sample, or when a byte is not
  /// below `vocabulary`, naming its position.
  TextDataset(const std::string& path, int64_t seq_len, int64_t vocabulary, uint64_t seed);

  int64_t samples() const override { return samples_; }
  int64_t bytes() const { return file_.size(); }

  TokenBatch batch(int64_t start, int64_t count) const override;
  std::optional<double> bytes_per_token() const override { return 1.0; }

  /// Which sample stands at a global sample index.
  int64_t sample_at(int64_t global_index) const;

 private:
  void check_vocabulary(int64_t vocabulary) const;

  RandomAccessFile file_;
  int64_t seq_len_;
  int64_t samples_;
  uint64_t seed_;
};

/// How often each byte value occurs in the first 256 MiB of a file.
std::vector<int64_t> byte_counts(const std::string& path);

/// The entropy of single bytes, of those of byte_counts(), in nats: the loss of the best model that ignores context.
double unigram_entropy(const std::string& path);

}  // namespace lockstep::trainer
