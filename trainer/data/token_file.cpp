#include "trainer/data/token_file.h"

#include <algorithm>

#include "core/digest/digest.h"
#include "core/error.h"
#include "trainer/data/data_file.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kCheckedTokens = 1 << 27;  ///< a fraction of a second; all of a large file would take minutes

template <class Id>
std::span<const Id> ids_of(const MappedFile& file, const TokenFormat& format) {
  return {reinterpret_cast<const Id*>(file.bytes().data() + format.header), static_cast<size_t>(format.tokens)};
}

/// Calls `visit` with all ids, of whatever width.
template <class Visit>
void visit_ids(const MappedFile& file, const TokenFormat& format, const Visit& visit) {
  format.width == 4 ? visit(ids_of<uint32_t>(file, format)) : visit(ids_of<uint16_t>(file, format));
}

[[noreturn]] void fail_outside(const std::string& path, int64_t position, int64_t id, int64_t vocabulary) {
  fail<BadInput>("dataset {}: token {} is id {}, outside the model's vocabulary of {}.", path, position, id,
                 vocabulary);
}

/// A file that is not there is what the user wrote wrongly.
MappedFile open_mapped(const std::string& path) {
  try {
    return MappedFile(path);
  } catch (const FileError& error) {
    fail<BadInput>("dataset {}", error.what());
  }
}

/// What stands beside a file, if it is to.
std::optional<MappedFile> open_beside(const std::string& path, bool is_wanted, const std::string& name,
                                      const char* what) {
  std::optional<MappedFile> file;
  if (!is_wanted) return file;
  try {
    file.emplace(name);
  } catch (const FileError& error) {
    fail<BadInput>("dataset {}: its {} {}", path, what, error.what());
  }
  return file;
}

}  // namespace

TokenFile::TokenFile(const std::string& path, int64_t vocabulary)
    : file_(open_mapped(path)),
      sidecar_(read_sidecar(path)),
      format_(token_format(path, file_.bytes(), sidecar_)),
      vocabulary_(vocabulary),
      borders_(open_beside(path, sidecar_ && sidecar_->documents > 0, borders_path(path), "document borders")),
      mask_(open_beside(path, sidecar_ && sidecar_->has_mask(), mask_path(path), "mask")) {
  if (sidecar_) check_sidecar(vocabulary);
  if (borders_) check_borders();
  if (mask_) check_mask();
  check_first_ids();
}

void TokenFile::check_sidecar(int64_t vocabulary) const {
  if (sidecar_->vocabulary > vocabulary)
    fail<BadInput>("dataset {}: has a vocabulary of {} ({}), more than the model's {}. Set model.vocabulary {}.",
                   path(), sidecar_->vocabulary, sidecar_->tokenizer, vocabulary, sidecar_->vocabulary);
  if (const auto found = data_digest(path()); found != sidecar_->data_digest)
    fail<BadInput>("dataset {}: is not the file that its sidecar is of: data digest {}, {} was expected.", path(),
                   found, sidecar_->data_digest);
}

void TokenFile::check_borders() const {
  const auto name = borders_path(path());
  const auto expected = sidecar_->documents * static_cast<int64_t>(sizeof(uint64_t));
  if (borders_->size() != expected)
    fail<BadInput>("dataset {}: {} has {} bytes; the sidecar's {} documents take {}.", path(), name, borders_->size(),
                   sidecar_->documents, expected);
  const auto starts = borders();
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool ascends = i == 0 ? starts[i] == 0 : starts[i] > starts[i - 1];
    if (!ascends || starts[i] >= static_cast<uint64_t>(tokens()))
      fail<BadInput>(
          "dataset {}: {}: document {} begins at token {}; they begin at 0, ascend, and end before token {}.", path(),
          name, i, starts[i], tokens());
  }
  if (digest(borders_->bytes()).text() != sidecar_->borders_digest)
    fail<BadInput>("dataset {}: {} is not the file that the sidecar is of: its digest is {}, {} was expected.", path(),
                   name, digest(borders_->bytes()).text(), sidecar_->borders_digest);
}

void TokenFile::check_mask() const {
  const auto name = mask_path(path());
  if (mask_->size() != tokens())
    fail<BadInput>("dataset {}: {} has {} bytes, one for each of {} tokens was expected.", path(), name, mask_->size(),
                   tokens());
  if (digest(mask_->bytes()).text() != sidecar_->mask_digest)
    fail<BadInput>("dataset {}: {} is not the file that the sidecar is of: its digest is {}, {} was expected.", path(),
                   name, digest(mask_->bytes()).text(), sidecar_->mask_digest);
}

void TokenFile::check_first_ids() const {
  file_.require_unchanged();
  visit_ids(file_, format_, [&](auto ids) {
    const auto checked = ids.first(std::min(ids.size(), static_cast<size_t>(kCheckedTokens)));
    const auto bad =
        std::find_if(checked.begin(), checked.end(), [&](auto id) { return static_cast<int64_t>(id) >= vocabulary_; });
    if (bad != checked.end()) fail_outside(path(), bad - checked.begin(), static_cast<int64_t>(*bad), vocabulary_);
  });
  file_.require_unchanged();
}

std::span<const uint64_t> TokenFile::borders() const {
  if (!borders_) return {};
  return {reinterpret_cast<const uint64_t*>(borders_->bytes().data()), borders_->bytes().size() / sizeof(uint64_t)};
}

void TokenFile::read_mask(int64_t start, std::span<std::byte> out) const {
  LOCKSTEP_CHECK(mask_ && start >= 0 && start + static_cast<int64_t>(out.size()) <= tokens(), "{} tokens at {} of {}",
                 out.size(), start, tokens());
  mask_->require_unchanged();
  const auto run = mask_->bytes().subspan(static_cast<size_t>(start), out.size());
  std::copy(run.begin(), run.end(), out.begin());
  mask_->require_unchanged();
}

void TokenFile::read(int64_t start, std::span<int64_t> out) const {
  LOCKSTEP_CHECK(start >= 0 && start + static_cast<int64_t>(out.size()) <= tokens(), "{} tokens at {} of {}",
                 out.size(), start, tokens());
  file_.require_unchanged();
  visit_ids(file_, format_, [&](auto ids) {
    const auto run = ids.subspan(static_cast<size_t>(start), out.size());
    std::copy(run.begin(), run.end(), out.begin());
  });
  file_.require_unchanged();
  const auto bad = std::find_if(out.begin(), out.end(), [&](int64_t id) { return id >= vocabulary_; });
  if (bad != out.end()) fail_outside(path(), start + (bad - out.begin()), *bad, vocabulary_);
}

}  // namespace lockstep::trainer
