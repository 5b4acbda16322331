#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/error.h"
#include "trainer/checkpoint/checkpoint_file.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kStepPrefix = "step-";

/// The step in a folder's name, -1 when it is another folder.
int64_t step_of(const std::string& name) {
  int64_t step = -1;
  if (!name.starts_with(kStepPrefix)) return -1;
  const auto* end = name.data() + name.size();
  const auto result = std::from_chars(name.data() + kStepPrefix.size(), end, step);
  return result.ec == std::errc{} && result.ptr == end ? step : -1;
}

bool belongs(const std::string& root, int64_t step, const RunOrigin& origin) {
  const auto saved = saved_origin(checkpoint_path(root, step));
  if (!saved) return false;
  const auto is_parent = [&](const RunOrigin::Parent& parent) {
    return parent.identity == saved->identity && step <= parent.step;
  };
  return saved->identity == origin.identity || std::any_of(origin.parents.begin(), origin.parents.end(), is_parent);
}

}  // namespace

std::string checkpoint_path(const std::string& root, int64_t step) {
  return fmt::format("{}/{}{}", root, kStepPrefix, step);
}

std::vector<int64_t> complete_steps(const std::string& root) {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const auto step = step_of(entry.path().filename().string());
    if (step >= 0 && fs::exists(entry.path() / kIndexFile, ignored)) steps.push_back(step);
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

void remove_old_checkpoints(const std::string& root, int64_t keep, const RunOrigin& origin) {
  if (keep <= 0) return;
  auto steps = complete_steps(root);
  std::erase_if(steps, [&](int64_t step) { return !belongs(root, step, origin); });
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i) {
    const fs::path folder = checkpoint_path(root, steps[i]);
    std::error_code error;
    fs::remove(folder / kIndexFile, error);
    if (!error) fs::remove_all(folder, error);
    if (error) fail<FileError>("{}: an old checkpoint cannot be removed: {}.", folder.string(), error.message());
  }
}

}  // namespace lockstep::trainer
