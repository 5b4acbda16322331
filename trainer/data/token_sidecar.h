#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::trainer {

/// What stands beside a file of tokens NAME.bin, in NAME.json: what the ids mean and what the file must be. Where
/// documents begin is in NAME.borders: the position of each one's first token, uint64, little-endian, ascending from 0.
/// Documents that are conversations have NAME.mask: a byte for each token, 1 where it is learned, 0 where it is given.
struct TokenSidecar {
  static constexpr int64_t kFormat = 1;

  std::string dtype = "uint16";  ///< or "uint32": the width of an id, little-endian
  int64_t tokens = 0;
  int64_t vocabulary = 0;             ///< ids are below it
  int64_t text_bytes = 0;             ///< of the text that was made tokens, in UTF-8
  int64_t documents = 0;              ///< 0: borders are not known, there is no NAME.borders
  std::string digest = {};            ///< of all bytes of NAME.bin (core/digest), 32 hexadecimal digits
  std::string data_digest = {};       ///< data_digest() of it, which costs little
  std::string borders_digest = {};    ///< of all bytes of NAME.borders; empty without
  std::string tokenizer = {};         ///< "bytes", or the name of its file
  std::string tokenizer_digest = {};  ///< of that file; empty for bytes
  std::string kind = "texts";         ///< what documents are; or "conversations", or "preferences": of each pair the
                                      ///< chosen conversation, then the rejected one
  std::string mask_digest = {};       ///< of all bytes of NAME.mask; empty for texts

  bool has_mask() const { return kind != "texts"; }
};

/// "a/b.bin" -> "a/b.json"; any other ending stays: "a/b.tok" -> "a/b.tok.json".
std::string sidecar_path(const std::string& token_file);
std::string borders_path(const std::string& token_file);
std::string mask_path(const std::string& token_file);

/// The sidecar of a file of tokens, none if there is none. BadInput, with the place, for one that is damaged or of
/// another format.
std::optional<TokenSidecar> read_sidecar(const std::string& token_file);

/// Throws FileError.
void write_sidecar(const std::string& token_file, const TokenSidecar& sidecar);

}  // namespace lockstep::trainer
