#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "trainer/checkpoint/strict_json.h"

namespace lockstep::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes and header lengths are little-endian");

constexpr int64_t kPrefix = 8;
constexpr int64_t kMaxHeader = 100'000'000;  // the limit of the format's own readers
constexpr std::string_view kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  int64_t size;
};
constexpr Dtype kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                             {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                             {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

std::string header_of(std::span<const TensorBytes> tensors) {
  auto header = nlohmann::json::object();
  int64_t end = 0;
  for (const auto& tensor : tensors) {
    const auto begin = std::exchange(end, end + static_cast<int64_t>(tensor.bytes.size()));
    LOCKSTEP_CHECK(tensor.name != kMetadata && !header.contains(tensor.name), "tensor name {}", tensor.name);
    LOCKSTEP_CHECK_EQ(element_count(tensor.shape) * element_size(tensor.dtype), end - begin, "bytes of {}",
                      tensor.name);
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  auto text = header.dump();
  text.append((kPrefix - text.size() % kPrefix) % kPrefix, ' ');  // the data starts aligned
  return text;
}

/// The part of a file behind its header.
struct Data {
  const std::string& path;
  int64_t begin;
  int64_t size;
};

SafetensorsFile::Entry read_entry(const JsonPlace& place, const Data& data) {
  place.require_keys({"dtype", "shape", "data_offsets"});
  SafetensorsFile::Entry entry{place["dtype"].text(), place["shape"].counts()};
  const auto offsets = place["data_offsets"].counts();
  if (offsets.size() != 2 || offsets[1] < offsets[0]) place["data_offsets"].fail_expected("begin and end");
  if (offsets[1] > data.size)
    fail<FileError>("{}: truncated: {} bytes of tensors, the header describes {}.", data.path, data.size, offsets[1]);
  const auto elements = element_count(entry.shape);
  const auto size = element_size(entry.dtype);
  if (size == 0) place["dtype"].fail_expected("a known type");
  entry.size = offsets[1] - offsets[0];
  if (elements < 0 || entry.size % size != 0 || entry.size / size != elements)
    place["data_offsets"].fail_expected("the size that dtype and shape give");
  entry.begin = data.begin + offsets[0];
  return entry;
}

std::string read_header(const RandomAccessFile& file) {
  if (file.size() < kPrefix)
    fail<FileError>("{}: damaged: {} bytes are no safetensors file.", file.path(), file.size());
  uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeader || static_cast<int64_t>(length) > file.size() - kPrefix)
    fail<FileError>("{}: damaged: a header of {} bytes in a file of {} bytes.", file.path(), length, file.size());
  std::string header(length, '\0');
  file.read(kPrefix, std::as_writable_bytes(std::span(header)));
  if (!header.starts_with('{')) fail<FileError>("{}: damaged: the header does not start with '{{'.", file.path());
  return header;
}

/// The tensors must fill the data exactly: no holes, no overlaps, nothing behind them.
void require_full_cover(const std::map<std::string, SafetensorsFile::Entry>& entries, const Data& data) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto& [name, entry] : entries) ranges.emplace_back(entry.begin, entry.size);
  std::sort(ranges.begin(), ranges.end());
  auto covered = data.begin;
  for (const auto& [begin, size] : ranges) {
    if (begin != covered)
      fail<FileError>("{}: damaged: hole or overlap at byte {}.", data.path, std::min(begin, covered));
    covered += size;
  }
  const auto rest = data.begin + data.size - covered;
  if (rest != 0) fail<FileError>("{}: damaged: {} bytes behind the last tensor.", data.path, rest);
}

}  // namespace

int64_t element_size(std::string_view dtype) {
  const auto* found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return d.name == dtype; });
  return found == std::end(kDtypes) ? 0 : found->size;
}

int64_t element_count(std::span<const int64_t> shape) {
  constexpr int64_t kMax = int64_t{1} << 62;
  int64_t count = 1;
  for (const auto size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > kMax) return -1;
  return count;
}

void write_safetensors(const std::string& path, std::span<const TensorBytes> tensors) {
  const auto header = header_of(tensors);
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const auto& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const auto header = read_header(file_);
  const auto document = parse_strict_json(header, path);
  const auto begin = kPrefix + static_cast<int64_t>(header.size());
  const Data data{path, begin, file_.size() - begin};
  if (!document.is_object()) JsonPlace(document, path).fail_expected("an object");
  for (const auto& [name, value] : document.items())
    if (name != kMetadata) entries_.emplace(name, read_entry({value, path, "/" + name}, data));
  require_full_cover(entries_, data);
}

}  // namespace lockstep::trainer
