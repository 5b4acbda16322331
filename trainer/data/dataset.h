#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/names/registry.h"

namespace lockstep::trainer {

struct Job;

/// A label that carries no loss.
inline constexpr int64_t kIgnoredLabel = -100;

/// Rows of token and label ids, row-major: label [r, t] follows token [r, t].
struct TokenBatch {
  int64_t rows = 0;
  int64_t seq_len = 0;
  std::vector<int64_t> tokens;
  std::vector<int64_t> labels;
  int64_t first_sample = 0;  ///< global index of row 0
  /// Of each token in its document, from 0; a document is seen by itself. Empty: a row is one document.
  std::vector<int64_t> positions = {};
};

/// Training data as samples in a global order. What stands at a global sample index never depends on ranks, batches or
/// earlier reads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t samples() const = 0;

  /// Rows `start` ... `start + count - 1` in global sample order; `start` >= 0 goes on through epochs without end.
  /// FileError when the data cannot be read or became shorter since it was opened. Safe to call from several threads.
  virtual TokenBatch batch(int64_t start, int64_t count) const = 0;

  /// Of the text that the tokens are of, in UTF-8, on average; none: not known.
  virtual std::optional<double> bytes_per_token() const { return std::nullopt; }
};

/// Opens a job's data for a model that knows `vocabulary` tokens. BadInput says what does not fit.
using DatasetBuilder = std::unique_ptr<Dataset> (*)(const Job& job, int64_t vocabulary);

/// By training.dataset.
Registry<DatasetBuilder>& dataset_registry();

std::unique_ptr<Dataset> make_dataset(const Job& job, int64_t vocabulary);

/// A digest of a job's data, of whatever kind: 32 hexadecimal digits; empty if the job names none. BadInput as
/// make_dataset() throws it, of what can be told without reading all.
std::string dataset_digest(const Job& job);

}  // namespace lockstep::trainer
