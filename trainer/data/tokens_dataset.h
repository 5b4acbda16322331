#pragma once
#include <string>
#include <vector>

#include "trainer/data/data_sources.h"
#include "trainer/data/dataset.h"
#include "trainer/data/sample_order.h"
#include "trainer/data/token_file.h"

namespace lockstep::trainer {

/// Files of token ids, one after the other or mixed (DataSource).
///
/// Sample k of a file is the seq_len + 1 ids from k * seq_len on: neighbours share one, the label of one's last token
/// and the other's first token; what is left at a file's end is no sample. A source's samples are those of its files in
/// turn. Which comes when is SampleOrder's.
class TokensDataset final : public Dataset {
 public:
  struct Options {
    std::vector<DataSource> sources;
    int64_t seq_len = 0;
    int64_t vocabulary = 0;
    uint64_t seed = 0;
    bool packs_documents = false;  ///< batches tell positions in documents, labels stop at their borders
  };

  /// BadInput for whatever is wrong with a file (TokenFile), for a source without a sample, and for files without
  /// document borders that are wanted.
  explicit TokensDataset(const Options& options);

  int64_t samples() const override { return samples_; }
  TokenBatch batch(int64_t start, int64_t count) const override;
  std::optional<double> bytes_per_token() const override;

 private:
  struct Source {
    std::vector<TokenFile> files;
    std::vector<int64_t> first_samples;  ///< of each file
    int64_t samples = 0, weight = 1;
  };

  Source opened(const DataSource& source) const;
  void read_row(const TokenFile& file, int64_t sample, size_t row, TokenBatch& batch) const;
  void keep_inside_documents(const TokenFile& file, int64_t start, size_t row, TokenBatch& batch) const;

  Options options_;
  std::vector<Source> sources_;
  int64_t samples_ = 0;
  std::optional<SampleOrder> order_;
};

/// A digest of what all these files make of a run: which there are, in which order and shares, and the data_digest() of
/// each, with `reads_borders` of its borders and of what is learned, too.
std::string tokens_digest(const std::vector<DataSource>& sources, bool reads_borders);

}  // namespace lockstep::trainer
