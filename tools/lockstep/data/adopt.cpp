#include "tools/lockstep/data/adopt.h"

#include <charconv>
#include <fstream>

#include "core/digest/digest.h"
#include "core/error.h"
#include "core/files/mapped_file.h"
#include "trainer/data/data_file.h"
#include "trainer/data/token_format.h"

namespace lockstep::tool {
namespace {

MappedFile opened(const std::string& path) try { return MappedFile(path); } catch (const FileError& error) {
  fail<BadInput>("dataset {}", error.what());
}

trainer::TokenFormat format_of(const MappedFile& file, const std::string& dtype) {
  if (dtype.empty()) return trainer::token_format(file.path(), file.bytes(), std::nullopt);
  const trainer::TokenSidecar said{.dtype = dtype, .tokens = file.size() / (dtype == "uint32" ? 4 : 2)};
  return trainer::token_format(file.path(), file.bytes(), said);
}

std::optional<uint64_t> id_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  uint64_t id = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id);
  if (read.ec != std::errc{} || read.ptr != end)
    fail<BadInput>("--end-of-document {} is no id; a file of tokens knows no names.", text);
  return id;
}

/// Calls `visit(position, id)` for every id of a file.
template <class Visit>
void visit_ids(const MappedFile& file, const trainer::TokenFormat& format, const Visit& visit) {
  const auto* first = file.bytes().data() + format.header;
  const auto* narrow = reinterpret_cast<const uint16_t*>(first);
  const auto* wide = reinterpret_cast<const uint32_t*>(first);
  for (int64_t i = 0; i < format.tokens; ++i) visit(i, format.width == 4 ? wide[i] : uint32_t{narrow[i]});
}

void require_below(const MappedFile& file, const trainer::TokenFormat& format, int64_t vocabulary) {
  visit_ids(file, format, [&](int64_t position, uint32_t id) {
    if (id >= vocabulary)
      fail<BadInput>("dataset {}: token {} is id {}, outside the vocabulary of {}.", file.path(), position, id,
                     vocabulary);
  });
}

/// One begins at 0, and one behind each end that is not the file's.
std::vector<uint64_t> borders_of(const MappedFile& file, const trainer::TokenFormat& format, uint64_t end) {
  std::vector<uint64_t> borders{0};
  visit_ids(file, format, [&](int64_t position, uint32_t id) {
    if (id == end && position + 1 < format.tokens) borders.push_back(static_cast<uint64_t>(position) + 1);
  });
  return borders;
}

void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail<FileError>("{}: cannot be written; is the disk full?", path);
}

}  // namespace

trainer::TokenSidecar adopt(const DataOptions& options, const std::string& tokens, const std::string& borders) {
  const auto file = opened(options.inputs.at(0));
  const auto format = format_of(file, options.dtype);
  require_below(file, format, options.vocabulary);
  trainer::TokenSidecar sidecar{.dtype = format.width == 4 ? "uint32" : "uint16", .tokens = format.tokens};
  sidecar.vocabulary = options.vocabulary;
  sidecar.tokenizer = "not known";
  const auto ids = file.bytes().subspan(static_cast<size_t>(format.header));
  write(tokens, ids);
  if (const auto end = id_of(options.end_of_document)) {
    const auto starts = borders_of(file, format, *end);
    write(borders, std::as_bytes(std::span(starts)));
    sidecar.documents = static_cast<int64_t>(starts.size());
    sidecar.borders_digest = digest(std::as_bytes(std::span(starts))).text();
  }
  sidecar.digest = digest(ids).text();
  sidecar.data_digest = trainer::data_digest(tokens);
  file.require_unchanged();
  return sidecar;
}

}  // namespace lockstep::tool
