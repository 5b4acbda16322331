#pragma once
#include <optional>
#include <vector>

#include "trainer/data/data_sources.h"
#include "trainer/data/dataset.h"
#include "trainer/data/sample_order.h"
#include "trainer/data/token_file.h"

namespace lockstep::trainer {

/// Files of conversations (`lockstep data prepare --chat`), one after the other or mixed: labels are what is learned.
///
/// A sample is a conversation, from its first token; behind its last one tokens are 0, and there are no labels. With
/// `packs_documents` it is as many neighbouring ones of a file as fit, each by itself (TokenBatch::positions). With
/// `pairs` it is one of a pair: of samples 2k and 2k + 1 of an order of pairs the first is chosen, the second rejected.
class ConversationsDataset final : public Dataset {
 public:
  struct Options {
    std::vector<DataSource> sources;
    int64_t seq_len = 0;
    int64_t vocabulary = 0;
    uint64_t seed = 0;
    bool packs_documents = false;
    bool pairs = false;
  };

  /// BadInput for whatever is wrong with a file (TokenFile), for one of another kind, for a conversation that is longer
  /// than a sample, with its number. REQUIRES: not both `packs_documents` and `pairs`.
  explicit ConversationsDataset(const Options& options);

  int64_t samples() const override { return samples_; }
  TokenBatch batch(int64_t start, int64_t count) const override;

 private:
  /// Documents [first, end) of a file.
  struct Sample {
    size_t file, first, end;
  };
  struct Source {
    std::vector<TokenFile> files;
    std::vector<Sample> samples;  ///< of pairs: the chosen ones, each followed by its rejected one
  };

  Source opened(const DataSource& source) const;
  void add_samples(const TokenFile& file, size_t index, std::vector<Sample>& samples) const;
  void read_row(const Source& source, const Sample& sample, size_t row, TokenBatch& batch) const;
  void read_document(const TokenFile& file, size_t document, size_t at, TokenBatch& batch) const;

  Options options_;
  std::vector<Source> sources_;
  int64_t samples_ = 0;
  std::optional<SampleOrder> order_;
};

}  // namespace lockstep::trainer
