#include "trainer/data/token_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "ids are read as they lie in the file");

constexpr int64_t kHeaderBytes = 256 * 4;

struct LlmcKind {
  int32_t magic, version;
  int64_t width;
};
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

int32_t header_value(std::span<const std::byte> bytes, size_t index) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

int64_t size_of(std::span<const std::byte> bytes) { return static_cast<int64_t>(bytes.size()); }

/// Of a file that begins as llm.c's do; none for any other.
std::optional<TokenFormat> llmc_format(const std::string& path, std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const auto magic = header_value(bytes, 0);
  const auto* kind = std::find_if(std::begin(kLlmcKinds), std::end(kLlmcKinds),
                                  [&](const LlmcKind& each) { return each.magic == magic; });
  if (kind == std::end(kLlmcKinds)) return std::nullopt;
  if (size_of(bytes) < kHeaderBytes)
    fail<BadInput>("dataset {}: begins as llm.c's files do and has {} bytes, less than their header of {}.", path,
                   bytes.size(), kHeaderBytes);
  if (header_value(bytes, 1) != kind->version)
    fail<BadInput>("dataset {}: is llm.c's with magic {} and version {}; version {} was expected.", path, magic,
                   header_value(bytes, 1), kind->version);
  const int64_t tokens = header_value(bytes, 2), expected = kHeaderBytes + tokens * kind->width;
  if (tokens < 0 || size_of(bytes) != expected)
    fail<BadInput>("dataset {}: its header tells {} tokens, which take {} bytes; the file has {}.", path, tokens,
                   expected, bytes.size());
  return TokenFormat{"llm.c", kind->width, kHeaderBytes, tokens};
}

/// Ids of 32 bits, read as 16, are ids and zeros in turn.
bool looks_like_32_bits(std::span<const std::byte> bytes) {
  const auto pairs = std::min<size_t>(bytes.size() / 4, 4096);
  bool has_low = false;
  for (size_t i = 0; i < pairs; ++i) {
    const auto id = static_cast<uint32_t>(header_value(bytes, i));
    if (id >> 16) return false;
    has_low = has_low || id > 0;
  }
  return pairs > 1 && has_low;
}

/// How many bytes of UTF-8 follow this one; -1 for one that no character of text begins with.
int followers_of(unsigned char byte) {
  if (byte < 0x80) return byte >= ' ' || byte == '\t' || byte == '\n' || byte == '\r' ? 0 : -1;
  if (byte < 0xc2 || byte > 0xf4) return -1;
  return byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
}

/// But for a character that is cut off at the end.
bool is_text(std::string_view bytes) {
  int following = 0;
  for (const unsigned char byte : bytes) {
    const bool follows = (byte & 0xc0) == 0x80;
    if (follows != (following > 0)) return false;
    following = follows ? following - 1 : followers_of(byte);
    if (following < 0) return false;
  }
  return true;
}

/// Of files of documents, which would be ids of large vocabularies; empty for any other. Ids that are text by chance
/// are few.
std::string_view documents_kind(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  constexpr size_t kLooked = 4096, kFewest = 8;
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kLooked));
  if (start.starts_with("\x1f\x8b\x08"sv)) return "gzip";
  if (start.starts_with("PAR1"sv)) return "Parquet";
  return start.size() >= kFewest && is_text(start) ? "text" : "";
}

void require_ids(const std::string& path, std::span<const std::byte> bytes) {
  const auto kind = documents_kind(bytes);
  if (kind.empty()) return;
  fail<BadInput>(
      "dataset {}: is {}, not ids of tokens. Make them of its documents: lockstep data prepare {} --tokenizer "
      "TOKENIZER --output NAME; if they are ids all the same, say so: lockstep data adopt --dtype uint16.",
      path, kind, path);
}

void require_whole(const std::string& path, int64_t bytes, int64_t width, const char* who) {
  if (bytes % width != 0)
    fail<BadInput>("dataset {}: {} bytes are no multiple of {}, the bytes of an id {}.", path, bytes, width, who);
}

TokenFormat described_format(const std::string& path, int64_t bytes, const TokenSidecar& sidecar) {
  const int64_t width = sidecar.dtype == "uint32" ? 4 : 2;
  require_whole(path, bytes, width, "as its sidecar says");
  if (bytes / width != sidecar.tokens)
    fail<BadInput>("dataset {}: has {} tokens of {}, its sidecar tells {}. Prepare it again.", path, bytes / width,
                   sidecar.dtype, sidecar.tokens);
  return {"Lockstep", width, 0, sidecar.tokens};
}

}  // namespace

TokenFormat token_format(const std::string& path, std::span<const std::byte> bytes,
                         const std::optional<TokenSidecar>& sidecar) {
  if (bytes.empty()) fail<BadInput>("dataset {}: is empty.", path);
  if (sidecar) return described_format(path, size_of(bytes), *sidecar);
  if (const auto llmc = llmc_format(path, bytes)) return *llmc;
  require_ids(path, bytes);
  require_whole(path, size_of(bytes), 2, "of a file without a sidecar");
  if (looks_like_32_bits(bytes))
    fail<BadInput>(
        "dataset {}: every second 16-bit number is 0: these are ids of 32 bits, and nothing says so. Say it with "
        "lockstep data adopt --dtype uint32.",
        path);
  return {"nanoGPT", 2, 0, size_of(bytes) / 2};
}

}  // namespace lockstep::trainer
