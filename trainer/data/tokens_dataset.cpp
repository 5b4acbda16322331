#include "trainer/data/tokens_dataset.h"

#include <algorithm>

#include "core/digest/digest.h"
#include "core/error.h"
#include "trainer/data/data_file.h"

namespace lockstep::trainer {

TokensDataset::TokensDataset(const Options& options) : options_(options) {
  std::vector<SampleOrder::Source> shares;
  for (const auto& source : options.sources) {
    sources_.push_back(opened(source));
    shares.push_back({sources_.back().samples, sources_.back().weight});
    samples_ += sources_.back().samples;
  }
  order_.emplace(std::move(shares), options.seed);
}

TokensDataset::Source TokensDataset::opened(const DataSource& source) const {
  Source opened;
  opened.weight = source.weight;
  int64_t tokens = 0;
  for (const auto& path : source.files) {
    const auto& file = opened.files.emplace_back(path, options_.vocabulary);
    if (options_.packs_documents && file.borders().empty())
      fail<BadInput>(
          "dataset {}: nothing says where its documents begin, which training.pack_documents needs. Make it with "
          "lockstep data prepare or adopt.",
          path);
    opened.first_samples.push_back(opened.samples);
    opened.samples += (file.tokens() - 1) / options_.seq_len;
    tokens += file.tokens();
  }
  if (opened.samples == 0)
    fail<BadInput>("dataset {}: {} tokens in {} files hold no sample of training.seq_len + 1 = {}.", source.written,
                   tokens, source.files.size(), options_.seq_len + 1);
  return opened;
}

TokenBatch TokensDataset::batch(int64_t start, int64_t count) const {
  const auto values = static_cast<size_t>(count * options_.seq_len);
  TokenBatch batch{count, options_.seq_len, std::vector<int64_t>(values), std::vector<int64_t>(values), start};
  if (options_.packs_documents) batch.positions.resize(values);
  for (int64_t r = 0; r < count; ++r) {
    const auto place = (*order_)(start + r);
    const auto& source = sources_[place.source];
    const auto after = std::upper_bound(source.first_samples.begin(), source.first_samples.end(), place.sample);
    const auto file = static_cast<size_t>(after - source.first_samples.begin()) - 1;
    read_row(source.files[file], place.sample - source.first_samples[file], static_cast<size_t>(r), batch);
  }
  return batch;
}

void TokensDataset::read_row(const TokenFile& file, int64_t sample, size_t row, TokenBatch& batch) const {
  const auto length = static_cast<size_t>(options_.seq_len);
  std::vector<int64_t> ids(length + 1);
  const auto start = sample * options_.seq_len;
  file.read(start, ids);
  const auto at = static_cast<ptrdiff_t>(row * length);
  std::copy(ids.begin(), ids.end() - 1, batch.tokens.begin() + at);
  std::copy(ids.begin() + 1, ids.end(), batch.labels.begin() + at);
  if (options_.packs_documents) keep_inside_documents(file, start, row, batch);
}

/// A row that begins inside of a document begins with position 0, as that document's other rows are not seen.
void TokensDataset::keep_inside_documents(const TokenFile& file, int64_t start, size_t row, TokenBatch& batch) const {
  const auto length = static_cast<size_t>(options_.seq_len), first = row * length;
  const auto borders = file.borders();
  auto next = std::upper_bound(borders.begin(), borders.end(), static_cast<uint64_t>(start));
  int64_t position = 0;
  for (size_t t = 0; t < length; ++t) {
    const auto token = static_cast<uint64_t>(start) + t;
    if (next != borders.end() && *next == token) position = 0, ++next;
    batch.positions[first + t] = position++;
    if (next != borders.end() && *next == token + 1) batch.labels[first + t] = kIgnoredLabel;
  }
}

/// Of a mixture the weighted mean; none where one file does not say.
std::optional<double> TokensDataset::bytes_per_token() const {
  double sum = 0, weights = 0;
  for (const auto& source : sources_) {
    double bytes = 0, tokens = 0;
    for (const auto& file : source.files) {
      if (!file.sidecar() || file.sidecar()->text_bytes == 0) return std::nullopt;
      bytes += static_cast<double>(file.sidecar()->text_bytes);
      tokens += static_cast<double>(file.tokens());
    }
    sum += static_cast<double>(source.weight) * bytes / tokens;
    weights += static_cast<double>(source.weight);
  }
  return sum / weights;
}

std::string tokens_digest(const std::vector<DataSource>& sources, bool reads_borders) {
  Digester digester;
  for (const auto& source : sources) {
    digester.update(fmt::format("source {} {}\n", source.weight, source.files.size()));
    for (const auto& file : source.files) {
      digester.update(data_digest(file) + "\n");
      const auto sidecar = read_sidecar(file);
      digester.update(fmt::format("dtype {}\n", sidecar ? sidecar->dtype : ""));
      if (reads_borders && sidecar) digester.update(sidecar->borders_digest + "\n");
      if (reads_borders && sidecar && sidecar->has_mask()) digester.update(sidecar->mask_digest + "\n");
    }
  }
  return digester.result().text();
}

}  // namespace lockstep::trainer
