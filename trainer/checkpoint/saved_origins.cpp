#include "trainer/checkpoint/saved_origins.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "trainer/checkpoint/checkpoint_file.h"

namespace lockstep::trainer {

std::optional<SavedOrigins::Stamp> SavedOrigins::stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Stamp{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

std::optional<RunOrigin> SavedOrigins::of(const std::string& folder) {
  const auto stamp = stamp_of(fmt::format("{}/{}", folder, kIndexFile));
  if (!stamp) return std::nullopt;
  const auto found = known_.find(folder);
  if (found != known_.end() && found->second.stamp == *stamp) return found->second.origin;
  return known_.insert_or_assign(folder, Known{*stamp, saved_origin(folder)}).first->second.origin;
}

}  // namespace lockstep::trainer
