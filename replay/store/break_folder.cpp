#include "replay/store/break_folder.h"

#include <algorithm>
#include <deque>
#include <filesystem>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"
#include "core/files/random_access_file.h"
#include "replay/store/recording_file.h"

namespace lockstep::replay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = "op.h5";

bool is_tensor(std::string_view name) {
  const bool begins = name.starts_with("operand.") || name.starts_with("result.");
  return begins && name.ends_with(".npy");
}

/// Whether it is the file of a break, and not anybody's of that name.
bool is_index(const std::string& path) {
  constexpr int64_t kHead = 8192;
  const RandomAccessFile file(path);
  std::string head(static_cast<size_t>(std::min(kHead, file.size())), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  return head.find(kBreakFormat) != head.npos;
}

/// Of a file that a break which was cut off was writing.
bool is_leftover(const std::string& name) {
  const auto before = name_before_crash(name);
  return !before.empty() && BreakFolder::is_name(std::string(before));
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail<FileError>("{} cannot be removed: {}", path.string(), error.message());
}

}  // namespace

bool BreakFolder::is_name(const std::string& name) { return name == kIndex || is_tensor(name); }

BreakFolder::BreakFolder(std::string path) : path_(path.empty() ? "." : std::move(path)) { names(); }

std::vector<std::string> BreakFolder::names() const {
  std::error_code error;
  const auto status = fs::status(path_, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (!fs::is_directory(status)) fail<BadInput>("{} is no folder: choose another one for the break (--dump).", path_);
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (!fs::is_regular_file(entry->symlink_status(error)) || !(is_name(name) || is_leftover(name)))
      fail<BadInput>("{} holds {}, which is of no break: choose another folder (--dump), or move it.", path_, name);
    names.push_back(name);
  }
  if (error) fail<FileError>("{} cannot be read: {}", path_, error.message());
  require_index(names);
  return names;
}

/// Without it names are all that speaks for a break: too little to remove anything.
void BreakFolder::require_index(const std::vector<std::string>& names) const {
  const bool is_break = std::any_of(names.begin(), names.end(), is_name);
  if (!is_break) return;
  const auto index = (fs::path(path_) / kIndex).string();
  if (std::find(names.begin(), names.end(), kIndex) == names.end() || !is_index(index))
    fail<BadInput>("{} is not of a break, so neither are the files beside it: choose another folder (--dump).", index);
}

std::vector<std::string> BreakFolder::write(const std::vector<File>& files) const {
  LOCKSTEP_CHECK(!files.empty() && files[0].first == kIndex);
  auto before = names();
  make_folders(path_);
  for (const auto& name : before)
    if (is_leftover(name)) remove_file(fs::path(path_) / name);
  std::erase_if(before, is_leftover);
  std::deque<AtomicFile> written;
  std::vector<std::string> paths;
  for (const auto& [name, content] : files) {
    LOCKSTEP_CHECK(is_name(name), "{}", name);
    paths.push_back((fs::path(path_) / name).string());
    written.emplace_back(paths.back()).write(content);
  }
  for (const auto& name : before)
    if (name != kIndex) remove_file(fs::path(path_) / name);
  for (auto& file : written) file.commit();
  return paths;
}

}  // namespace lockstep::replay
