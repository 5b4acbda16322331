#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/disk.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/checkpoint/checkpoint_names.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

bool belongs(const std::optional<RunOrigin>& saved, int64_t step, const RunOrigin& origin) {
  if (!saved) return false;
  const auto is_parent = [&](const RunOrigin::Parent& parent) {
    return parent.identity == saved->identity && step <= parent.step;
  };
  return saved->identity == origin.identity || std::any_of(origin.parents.begin(), origin.parents.end(), is_parent);
}

/// The first error, after all has been tried.
std::error_code remove_files_of_saves(const fs::path& folder) {
  std::error_code first, error;
  for (const auto& entry : fs::directory_iterator(folder, first)) {
    const bool is_file = entry.symlink_status(error).type() == fs::file_type::regular;
    if (is_file && is_of_save(entry.path().filename().string())) fs::remove(entry.path(), error);
    if (error && !first) first = error;
  }
  fs::remove(folder, error);
  if (error && error != std::errc::directory_not_empty && !first) first = error;
  return first;
}

/// The index has gone for good before anything else goes.
std::error_code remove_checkpoint(const fs::path& folder) {
  std::error_code error;
  fs::remove(folder / kIndexFile, error);
  if (error) return error;
  if (flush_folder(folder.string()) != 0) return {errno, std::generic_category()};
  return remove_files_of_saves(folder);
}

/// A folder of the system's own, not a link to one, in which nothing is called as the index: a link that leads nowhere
/// today may have led to one yesterday.
bool is_abandoned(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.symlink_status(error).type() == fs::file_type::directory &&
         fs::symlink_status(entry.path() / kIndexFile, error).type() == fs::file_type::not_found;
}

}  // namespace

std::string checkpoint_path(const std::string& root, int64_t step) {
  return fmt::format("{}/{}", root, step_folder_name(step));
}

std::vector<int64_t> complete_steps(const std::string& root) {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const auto step = step_of_folder(entry.path().filename().string());
    if (step && fs::exists(entry.path() / kIndexFile, ignored)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<int64_t> step_to_load(const std::string& root, int64_t wanted) {
  const auto steps = complete_steps(root);
  if (wanted == -1) return steps.empty() ? std::nullopt : std::optional(steps.back());
  if (!std::binary_search(steps.begin(), steps.end(), wanted))
    fail<BadInput>("checkpoint.load_step is {}, but {} has {}.", wanted, root,
                   steps.empty() ? "no complete checkpoint" : fmt::format("only {}", fmt::join(steps, ", ")));
  return wanted;
}

std::vector<int64_t> own_steps(const std::string& root, const RunOrigin& origin, SavedOrigins& known) {
  auto steps = complete_steps(root);
  std::erase_if(steps, [&](int64_t step) { return !belongs(known.of(checkpoint_path(root, step)), step, origin); });
  return steps;
}

void remove_old_checkpoints(const std::string& root, int64_t keep, const RunOrigin& origin, SavedOrigins& known) {
  const auto kept = static_cast<size_t>(keep);
  if (keep <= 0 || complete_steps(root).size() <= kept) return;  // no index need be read
  const auto steps = own_steps(root, origin, known);
  for (size_t i = 0; i + kept < steps.size(); ++i) {
    const auto folder = checkpoint_path(root, steps[i]);
    if (const auto error = remove_checkpoint(folder))
      fail<FileError>("{}: an old checkpoint cannot be removed: {}.", folder, error.message());
    known.forget(folder);
  }
}

void remove_old_checkpoints(const std::string& root, int64_t keep, const RunOrigin& origin) {
  SavedOrigins nothing_known;
  remove_old_checkpoints(root, keep, origin, nothing_known);
}

void remove_abandoned(const std::string& root, int64_t saving) {
  std::error_code ignored;
  std::vector<fs::path> abandoned;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const auto step = step_of_folder(entry.path().filename().string());
    if (step && *step != saving && is_abandoned(entry)) abandoned.push_back(entry.path());
  }
  for (const auto& folder : abandoned) remove_files_of_saves(folder);
}

}  // namespace lockstep::trainer
