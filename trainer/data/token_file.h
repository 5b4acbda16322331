#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/files/mapped_file.h"
#include "trainer/data/token_format.h"

namespace lockstep::trainer {

/// A file of token ids in memory, with its sidecar, its document borders and its mask if it has them. Safe to share
/// between threads.
class TokenFile {
 public:
  /// BadInput that names the file for whatever is missing, damaged or does not fit (token_format(), the sidecar's
  /// vocabulary, its digest, borders); for an id that is not below `vocabulary`, with its position: of the first 2^27
  /// tokens now, of others when they are read.
  TokenFile(const std::string& path, int64_t vocabulary);

  const std::string& path() const { return file_.path(); }
  int64_t tokens() const { return format_.tokens; }
  const TokenFormat& format() const { return format_; }
  const std::optional<TokenSidecar>& sidecar() const { return sidecar_; }

  /// Where documents begin: ascending, the first at 0. Empty: not known.
  std::span<const uint64_t> borders() const;

  /// Of tokens `start` ... `start + out.size() - 1` whether they are learned, 1, or given, 0. Errors as read().
  /// REQUIRES: the sidecar has a mask, the file so many tokens.
  void read_mask(int64_t start, std::span<std::byte> out) const;

  /// Tokens `start` ... `start + out.size() - 1`. BadInput for an id outside the vocabulary, FileError if the file
  /// changed since it was opened. REQUIRES: it has so many.
  void read(int64_t start, std::span<int64_t> out) const;

 private:
  void check_sidecar(int64_t vocabulary) const;
  void check_borders() const;
  void check_mask() const;
  void check_first_ids() const;

  MappedFile file_;
  std::optional<TokenSidecar> sidecar_;
  TokenFormat format_;
  int64_t vocabulary_;
  std::optional<MappedFile> borders_, mask_;
};

}  // namespace lockstep::trainer
