#include "core/files/move_aside.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/disk.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// What cannot be looked at is tried: renaming says why.
fs::path free_name(const fs::path& path) {
  for (int64_t number = 1;; ++number) {
    const auto name = fmt::format("{}-{}{}", path.stem().string(), number, path.extension().string());
    auto free = path.parent_path() / name;
    std::error_code error;
    if (!fs::exists(fs::symlink_status(free, error))) return free;
  }
}

}  // namespace

std::string move_aside(const std::string& path) {
  const fs::path before(path), after = free_name(before);
  std::error_code error;
  fs::rename(before, after, error);
  if (error) fail<FileError>("{} cannot be renamed to {}: {}", path, after.string(), error.message());
  const auto folder = before.has_parent_path() ? before.parent_path().string() : ".";
  if (flush_folder(folder) != 0)
    fail<FileError>("{} cannot be flushed to the disk: {}", folder, std::generic_category().message(errno));
  return after.string();
}

}  // namespace lockstep
