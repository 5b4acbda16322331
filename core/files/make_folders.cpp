#include "core/files/make_folders.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/disk.h"

namespace lockstep {
namespace {

[[noreturn]] void failed(const std::string& path, std::string_view what, int reason) {
  fail<FileError>("{} {}: {}", path, what, std::generic_category().message(reason));
}

bool is_folder(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    failed(path, "cannot be created", errno);
  }
  if (!S_ISDIR(status.st_mode)) failed(path, "cannot be created", ENOTDIR);
  return true;
}

/// Whether this call created it, and not another process at the same time.
bool make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  const int reason = errno;
  if (reason != EEXIST || !is_folder(path)) failed(path, "cannot be created", reason);
  return false;
}

}  // namespace

std::vector<std::string> make_folders(const std::string& path) {
  std::vector<std::string> made;
  std::filesystem::path folder;
  for (const auto& name : std::filesystem::path(path)) {
    const auto around = folder.empty() ? "." : folder.string();
    if (!name.empty()) folder /= name;  // a slash at the end makes an empty one
    if (name.empty() || is_folder(folder.string())) continue;
    if (make_folder(folder.string())) made.push_back(folder.string());
    if (flush_folder(around) != 0) failed(around, "cannot be flushed to the disk", errno);
  }
  return made;
}

}  // namespace lockstep
