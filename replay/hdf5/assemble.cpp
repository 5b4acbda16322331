#include <cstring>
#include <limits>

#include "core/error.h"
#include "replay/format/datasets.h"
#include "replay/format/dtypes.h"
#include "replay/format/validate.h"
#include "replay/hdf5/catalog.h"

namespace lockstep::replay {
namespace {

using File = std::span<const std::byte>;

template <class... Args>
void require(bool holds, fmt::format_string<Args...> what, Args&&... args) {
  if (!holds) fail<FileError>(what, std::forward<Args>(args)...);
}

/// The bytes of an entry, once its place is known to be in the file.
File bytes_of(const CatalogEntry& entry, File file) {
  uint64_t size = entry.element_size;
  bool fits = true;
  for (const auto n : entry.sizes) fits = fits && !__builtin_mul_overflow(size, n, &size);
  require(fits && size <= file.size() && entry.offset <= file.size() - size,
          "{} has more bytes than the file, or lies behind its end", entry.path);
  return file.subspan(entry.offset, size);
}

/// All sizes together: no file of a few bytes that says the same ones a thousand times.
void check_sizes(const Catalog& catalog, File file) {
  uint64_t sum = 0;
  for (const auto& entry : catalog.entries) {
    sum += bytes_of(entry, file).size();
    require(sum <= file.size(), "the datasets have more bytes than the file");
  }
}

std::size_t dimensions_of(Content content) {
  return content == Content::kText ? 0 : content == Content::kSamples ? 2 : 1;
}

/// 0 for strings, which are as long as they are.
std::size_t element_size_of(const Dataset& dataset) {
  if (dataset.content == Content::kSamples) return sizeof(int32_t);
  if (dataset.content == Content::kBytes) return 1;
  return dataset.content == Content::kTable ? row_size(*dataset.columns) : 0;
}

void check_shapes(const Catalog& catalog) {
  require(catalog.entries.size() >= kDatasets.size(), "datasets are missing");
  for (std::size_t i = 0; i < kDatasets.size(); ++i) {
    const auto& entry = catalog.entries[i];
    const auto& dataset = kDatasets[i];
    const auto element_size = element_size_of(dataset);
    require(entry.path == dataset.path, "{} stands where {} is due", entry.path, dataset.path);
    require(entry.sizes.size() == dimensions_of(dataset.content), "{} has {} dimensions", entry.path,
            entry.sizes.size());
    require(element_size == 0 ? entry.element_size > 0 : entry.element_size == element_size,
            "{} has elements of {} bytes", entry.path, entry.element_size);
    for (const auto size : entry.sizes)
      require(dataset.content == Content::kBytes || size <= kMaxRows, "{} has {} rows", entry.path, size);
  }
}

/// Text up to the zeros at its end, of which there is one at least.
std::string text_of(File bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  require(text.ends_with('\0'), "a string has no end: {}", text);
  while (text.ends_with('\0')) text.remove_suffix(1);
  return std::string(text);
}

/// "key = value" lines.
std::vector<std::pair<std::string, std::string>> read_machine(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> machine;
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('\n');
    require(end != rest.npos, "/machine ends in the middle of a line");
    const auto line = rest.substr(0, end);
    const auto equals = line.find(" = ");
    require(equals != line.npos, "/machine has a line without a value: {}", line);
    machine.emplace_back(line.substr(0, equals), line.substr(equals + 3));
    rest.remove_prefix(end + 1);
  }
  return machine;
}

std::vector<std::string> read_names(File bytes, const CatalogEntry& entry) {
  require(entry.element_size <= kMaxName + 1, "/names are longer than {} bytes", kMaxName);
  std::vector<std::string> names;
  names.reserve(entry.sizes[0]);
  for (std::size_t i = 0; i < entry.sizes[0]; ++i)
    names.push_back(text_of(bytes.subspan(i * entry.element_size, entry.element_size)));
  return names;
}

std::vector<RecordedScalar> read_scalars(File bytes) {
  std::vector<RecordedScalar> scalars;
  for (const auto& row : unpack<ScalarRow>(kScalarColumns, bytes))
    scalars.push_back({text_of(std::as_bytes(std::span(row.name))), row.bits});
  return scalars;
}

std::vector<int32_t> read_samples(File bytes) {
  std::vector<int32_t> samples(bytes.size() / sizeof(int32_t));
  if (!bytes.empty()) std::memcpy(samples.data(), bytes.data(), bytes.size());
  return samples;
}

RecordedTensor read_tensor(const CatalogEntry& entry, File file) {
  constexpr std::string_view kFolder = "/state/";
  require(entry.path.starts_with(kFolder), "{} does not belong here", entry.path);
  const auto* dtype = find_dtype(entry.dtype);
  require(dtype != nullptr && dtype->size == entry.element_size, "{} has dtype '{}'", entry.path, entry.dtype);
  const auto bytes = bytes_of(entry, file);
  RecordedTensor tensor{entry.path.substr(kFolder.size()), dtype->number, {}, {bytes.begin(), bytes.end()}};
  for (const auto size : entry.sizes) {
    require(size <= uint64_t{std::numeric_limits<int64_t>::max()}, "{} has a size of {}", entry.path, size);
    tensor.sizes.push_back(static_cast<int64_t>(size));
  }
  return tensor;
}

void read_header(const Catalog& catalog, StepRecording& r) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  require(catalog.rank >= 0 && catalog.rank < kMax && catalog.world > 0 && catalog.world < kMax, "rank {} of {}",
          catalog.rank, catalog.world);
  require(catalog.complete >> 1 == 0 && catalog.has_state >> 1 == 0, "complete {}, has_state {}", catalog.complete,
          catalog.has_state);
  r.rank = static_cast<int32_t>(catalog.rank);
  r.world = static_cast<int32_t>(catalog.world);
  r.step = catalog.step;
  r.complete = catalog.complete == 1;
  r.has_state = catalog.has_state == 1;
  r.first_sample = catalog.first_sample;
  r.next_sample = catalog.next_sample;
  r.state_digest = catalog.state_digest;
}

void read_datasets(const Catalog& catalog, File file, StepRecording& r) {
  const auto bytes = [&](std::size_t i) { return bytes_of(catalog.entries[i], file); };
  r.reason = text_of(bytes(kReason));
  r.job = text_of(bytes(kJob));
  r.machine = read_machine(text_of(bytes(kMachine)));
  const auto& sizes = catalog.entries[kTokens].sizes;
  require(sizes == catalog.entries[kLabels].sizes, "tokens and labels have other sizes");
  const auto& packed = catalog.entries[kPositions].sizes;
  require(packed == sizes || (packed[0] == 0 && packed[1] == sizes[1]), "tokens and positions have other sizes");
  r.rows = static_cast<int64_t>(sizes[0]);
  r.seq_len = static_cast<int64_t>(sizes[1]);
  r.tokens = read_samples(bytes(kTokens));
  r.labels = read_samples(bytes(kLabels));
  r.positions = read_samples(bytes(kPositions));
  r.scalars = read_scalars(bytes(kScalarTable));
  r.names = read_names(bytes(kNameTable), catalog.entries[kNameTable]);
  r.ops = unpack<RecordedOp>(kOpColumns, bytes(kOpTable));
  r.results = unpack<RecordedResult>(kResultColumns, bytes(kResultTable));
  r.collectives = unpack<RecordedCollective>(kCollectiveColumns, bytes(kCollectiveTable));
  r.pieces = unpack<RecordedPiece>(kPieceColumns, bytes(kPieceTable));
  const auto payload = bytes(kPayload);
  r.payload.assign(payload.begin(), payload.end());
}

}  // namespace

StepRecording assemble(const Catalog& catalog, std::span<const std::byte> file) {
  check_sizes(catalog, file);
  check_shapes(catalog);
  StepRecording recording;
  read_header(catalog, recording);
  read_datasets(catalog, file, recording);
  for (std::size_t i = kDatasets.size(); i < catalog.entries.size(); ++i)
    recording.state.push_back(read_tensor(catalog.entries[i], file));
  validate(recording);
  return recording;
}

}  // namespace lockstep::replay
