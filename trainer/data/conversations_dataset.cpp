#include "trainer/data/conversations_dataset.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

/// Tokens of a document, its last one included.
int64_t length_of(const TokenFile& file, size_t document) {
  const auto borders = file.borders();
  const auto end = document + 1 < borders.size() ? static_cast<int64_t>(borders[document + 1]) : file.tokens();
  return end - static_cast<int64_t>(borders[document]);
}

void require_kind(const TokenFile& file, const char* kind) {
  const auto found = file.sidecar() ? file.sidecar()->kind : "tokens without a sidecar";
  if (found != kind)
    fail<BadInput>("dataset {}: holds {}, not {}. lockstep data prepare --chat makes them.", file.path(), found, kind);
}

}  // namespace

ConversationsDataset::ConversationsDataset(const Options& options) : options_(options) {
  LOCKSTEP_CHECK(!options.packs_documents || !options.pairs, "a pair is not packed");
  const auto together = options.pairs ? 2 : 1;
  std::vector<SampleOrder::Source> shares;
  for (const auto& source : options.sources) {
    sources_.push_back(opened(source));
    const auto samples = static_cast<int64_t>(sources_.back().samples.size());
    shares.push_back({samples / together, source.weight});
    samples_ += samples;
  }
  order_.emplace(std::move(shares), options.seed);
}

ConversationsDataset::Source ConversationsDataset::opened(const DataSource& source) const {
  Source opened;
  for (const auto& path : source.files) {
    const auto& file = opened.files.emplace_back(path, options_.vocabulary);
    require_kind(file, options_.pairs ? "preferences" : "conversations");
    add_samples(file, opened.files.size() - 1, opened.samples);
  }
  return opened;
}

/// A conversation's last token is a label alone.
void ConversationsDataset::add_samples(const TokenFile& file, size_t index, std::vector<Sample>& samples) const {
  int64_t filled = 0;
  for (size_t document = 0; document < file.borders().size(); ++document) {
    const auto tokens = length_of(file, document) - 1;
    if (tokens > options_.seq_len)
      fail<BadInput>(
          "dataset {}: conversation {} has {} tokens, more than training.seq_len + 1 = {}. Raise it, or prepare the "
          "file "
          "with --longest {}.",
          file.path(), document, tokens + 1, options_.seq_len + 1, options_.seq_len + 1);
    const bool joins = options_.packs_documents && document > 0 && filled + tokens <= options_.seq_len;
    if (joins)
      samples.back().end = document + 1, filled += tokens;
    else
      samples.push_back({index, document, document + 1}), filled = tokens;
  }
}

TokenBatch ConversationsDataset::batch(int64_t start, int64_t count) const {
  const auto values = static_cast<size_t>(count * options_.seq_len);
  TokenBatch batch{count, options_.seq_len, std::vector<int64_t>(values), std::vector<int64_t>(values, kIgnoredLabel),
                   start};
  if (options_.packs_documents) batch.positions.resize(values);
  const int64_t together = options_.pairs ? 2 : 1;
  for (int64_t r = 0; r < count; ++r) {
    const auto place = (*order_)((start + r) / together);
    const auto& source = sources_[place.source];
    const auto sample = static_cast<size_t>(place.sample * together + (start + r) % together);
    read_row(source, source.samples[sample], static_cast<size_t>(r), batch);
  }
  return batch;
}

void ConversationsDataset::read_row(const Source& source, const Sample& sample, size_t row, TokenBatch& batch) const {
  const auto length = static_cast<size_t>(options_.seq_len), end = (row + 1) * length;
  size_t at = row * length;
  for (size_t document = sample.first; document < sample.end; ++document) {
    const auto& file = source.files[sample.file];
    read_document(file, document, at, batch);
    at += static_cast<size_t>(length_of(file, document) - 1);
  }
  // What is behind the last one sees itself alone.
  if (options_.packs_documents)
    for (int64_t position = 0; at < end; ++at) batch.positions[at] = position++;
}

void ConversationsDataset::read_document(const TokenFile& file, size_t document, size_t at, TokenBatch& batch) const {
  const auto count = static_cast<size_t>(length_of(file, document));
  const auto start = static_cast<int64_t>(file.borders()[document]);
  std::vector<int64_t> ids(count);
  std::vector<std::byte> learned(count);
  file.read(start, ids);
  file.read_mask(start, learned);
  for (size_t t = 0; t + 1 < count; ++t) {
    batch.tokens[at + t] = ids[t];
    if (learned[t + 1] != std::byte{0}) batch.labels[at + t] = ids[t + 1];
    if (options_.packs_documents) batch.positions[at + t] = static_cast<int64_t>(t);
  }
}

}  // namespace lockstep::trainer
