#include "core/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/disk.h"

namespace lockstep {
namespace {

constexpr std::string_view kTemporary = ".partial-";  ///< and the process's id

/// Exists and is no regular file: there is nothing to rename over.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

/// What a chain of symbolic links points to, so that the link itself survives.
std::string behind_links(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(behind_links(path)) {
  const bool in_place = is_special(path_);
  if (!in_place) temporary_ = fmt::format("{}{}{}", path_, kTemporary, ::getpid());
  const int flags = O_WRONLY | O_CLOEXEC | (in_place ? 0 : O_CREAT | O_TRUNC);
  descriptor_ = ::open((in_place ? path_ : temporary_).c_str(), flags, 0666);
  if (descriptor_ < 0) {
    temporary_.clear();
    failed("cannot be written", path_);
  }
}

AtomicFile::~AtomicFile() {
  close();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(descriptor_ >= 0, "{} was already committed", path_);
  if (write_all(descriptor_, bytes) != 0) failed("cannot be written", path_);
}

void AtomicFile::write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }

void AtomicFile::commit() {
  LOCKSTEP_CHECK(descriptor_ >= 0, "{} was already committed", path_);
  if (temporary_.empty()) return close();
  if (::fsync(descriptor_) != 0) failed("cannot be flushed to the disk", path_);
  close();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) failed("cannot be put in place", path_);
  temporary_.clear();
  const auto folder = folder_of(path_);
  if (flush_folder(folder) != 0) failed("cannot be flushed to the disk", folder);
}

void AtomicFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void AtomicFile::failed(std::string_view what, const std::string& path) const {
  const int reason = errno;
  fail<FileError>("{} {}: {}", path, what, std::generic_category().message(reason));
}

std::string_view name_before_crash(std::string_view temporary) {
  const auto at = temporary.rfind(kTemporary);
  if (at == temporary.npos) return {};
  const auto process = temporary.substr(at + kTemporary.size());
  const bool is_number = !process.empty() && process.find_first_not_of("0123456789") == process.npos;
  return is_number ? temporary.substr(0, at) : std::string_view{};
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace lockstep
