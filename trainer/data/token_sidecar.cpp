#include "trainer/data/token_sidecar.h"

#include <filesystem>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/files/random_access_file.h"
#include "trainer/checkpoint/strict_json.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kMostBytes = 1 << 20;

std::string beside(const std::string& token_file, const char* ending) {
  const std::filesystem::path path(token_file);
  if (path.extension() != ".bin") return token_file + ending;
  return std::filesystem::path(path).replace_extension(ending).string();
}

/// Sidecars of texts do not speak of conversations.
void take_kind(const JsonPlace& json, TokenSidecar& sidecar) {
  sidecar.kind = json["kind"].text();
  if (sidecar.kind != "conversations" && sidecar.kind != "preferences")
    json["kind"].fail_expected("conversations or preferences");
  sidecar.mask_digest = json["mask_digest"].text();
  if (sidecar.documents == 0) json["documents"].fail_expected("at least 1");
  if (sidecar.kind == "preferences" && sidecar.documents % 2 != 0)
    json["documents"].fail_expected("an even number: preferences are pairs");
}

TokenSidecar sidecar_of(const JsonPlace& json, bool has_kind) {
  if (has_kind)
    json.require_keys({"format", "dtype", "tokens", "vocabulary", "text_bytes", "documents", "digest", "data_digest",
                       "borders_digest", "tokenizer", "tokenizer_digest", "kind", "mask_digest"});
  else
    json.require_keys({"format", "dtype", "tokens", "vocabulary", "text_bytes", "documents", "digest", "data_digest",
                       "borders_digest", "tokenizer", "tokenizer_digest"});
  if (json["format"].count() != TokenSidecar::kFormat) json["format"].fail_expected("1, all that this build knows");
  TokenSidecar sidecar;
  sidecar.dtype = json["dtype"].text();
  if (sidecar.dtype != "uint16" && sidecar.dtype != "uint32") json["dtype"].fail_expected("uint16 or uint32");
  sidecar.tokens = json["tokens"].count();
  sidecar.vocabulary = json["vocabulary"].count();
  sidecar.text_bytes = json["text_bytes"].count();
  sidecar.documents = json["documents"].count();
  sidecar.digest = json["digest"].text();
  sidecar.data_digest = json["data_digest"].text();
  sidecar.borders_digest = json["borders_digest"].text();
  sidecar.tokenizer = json["tokenizer"].text();
  sidecar.tokenizer_digest = json["tokenizer_digest"].text();
  if (has_kind) take_kind(json, sidecar);
  return sidecar;
}

}  // namespace

std::string sidecar_path(const std::string& token_file) { return beside(token_file, ".json"); }
std::string borders_path(const std::string& token_file) { return beside(token_file, ".borders"); }
std::string mask_path(const std::string& token_file) { return beside(token_file, ".mask"); }

std::optional<TokenSidecar> read_sidecar(const std::string& token_file) {
  const auto path = sidecar_path(token_file);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return std::nullopt;
  try {
    const auto document = parse_strict_json(RandomAccessFile(path).text(kMostBytes), path);
    return sidecar_of(JsonPlace(document, path), document.is_object() && document.contains("kind"));
  } catch (const FileError& error) {
    fail<BadInput>("dataset {}: its sidecar {}", token_file, error.what());
  }
}

void write_sidecar(const std::string& token_file, const TokenSidecar& s) {
  nlohmann::ordered_json json = {{"format", TokenSidecar::kFormat},
                                 {"dtype", s.dtype},
                                 {"tokens", s.tokens},
                                 {"vocabulary", s.vocabulary},
                                 {"text_bytes", s.text_bytes},
                                 {"documents", s.documents},
                                 {"digest", s.digest},
                                 {"data_digest", s.data_digest},
                                 {"borders_digest", s.borders_digest},
                                 {"tokenizer", s.tokenizer},
                                 {"tokenizer_digest", s.tokenizer_digest}};
  if (s.has_mask()) json["kind"] = s.kind, json["mask_digest"] = s.mask_digest;
  write_file_atomically(sidecar_path(token_file), json.dump(2) + "\n");
}

}  // namespace lockstep::trainer
