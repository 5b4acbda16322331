#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "core/digest/digest.h"
#include "tests/support/temporary_folder.h"
#include "trainer/data/data_file.h"
#include "trainer/data/token_sidecar.h"

namespace lockstep::testing {

/// Numbers as they lie in a file.
template <class Id>
std::string raw(const std::vector<Id>& ids) {
  std::string bytes(ids.size() * sizeof(Id), '\0');
  if (!ids.empty()) std::memcpy(bytes.data(), ids.data(), bytes.size());
  return bytes;
}

/// llm.c's header before ids.
inline std::string llmc(int32_t magic, int32_t version, int32_t count, const std::string& ids) {
  std::vector<int32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = count;
  return raw(header) + ids;
}

inline std::vector<uint16_t> counting_ids(size_t count, uint16_t first = 0) {
  std::vector<uint16_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<uint16_t>(first + i));
  return ids;
}

/// Of NAME.bin, 16 bits, with a sidecar and borders if there are any; gives its path.
inline std::string write_tokens(const TemporaryFolder& folder, const std::string& name,
                                const std::vector<uint16_t>& ids, const std::vector<uint64_t>& borders = {},
                                int64_t vocabulary = 65536, int64_t text_bytes = 0) {
  const auto content = raw(ids), starts = raw(borders);
  auto path = folder.write(name + ".bin", content);
  if (!borders.empty()) folder.write(name + ".borders", starts);
  trainer::write_sidecar(path, {.dtype = "uint16",
                                .tokens = static_cast<int64_t>(ids.size()),
                                .vocabulary = vocabulary,
                                .text_bytes = text_bytes,
                                .documents = static_cast<int64_t>(borders.size()),
                                .digest = digest(content).text(),
                                .data_digest = trainer::data_digest(path),
                                .borders_digest = borders.empty() ? "" : digest(starts).text(),
                                .tokenizer = "bytes",
                                .tokenizer_digest = ""});
  return path;
}

}  // namespace lockstep::testing
