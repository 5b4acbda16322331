#include "trainer/checkpoint/checkpoint_names.h"

#include <charconv>
#include <filesystem>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "trainer/checkpoint/checkpoint_index.h"

namespace lockstep::trainer {
namespace {

constexpr std::string_view kStep = "step-", kData = "data-", kTensors = ".safetensors";

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// A number of at least so many digits, with room for the next.
std::optional<int64_t> take_number(std::string_view& text, size_t digits) {
  constexpr size_t kMostDigits = 18;
  const auto size = std::min(text.find_first_not_of("0123456789"), text.size());
  if (size < digits || size > kMostDigits) return std::nullopt;
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + size, number);
  text.remove_prefix(size);
  return number;
}

/// The attempt in a data file's name.
std::optional<int64_t> attempt_of_data(std::string_view name) {
  if (!take(name, kData)) return std::nullopt;
  const auto attempt = take_number(name, 4);
  const bool is_data = attempt && take(name, "-") && take_number(name, 5) && take(name, "-") && take_number(name, 4);
  return is_data && name == kTensors ? attempt : std::nullopt;
}

}  // namespace

std::string step_folder_name(int64_t step) { return fmt::format("{}{}", kStep, step); }

std::optional<int64_t> step_of_folder(std::string_view name) {
  auto rest = name;
  if (!take(rest, kStep)) return std::nullopt;
  const auto step = take_number(rest, 1);
  return step && step_folder_name(*step) == name ? step : std::nullopt;
}

void require_own_name(const std::string& folder, int64_t step) {
  std::error_code error;
  const auto path = (std::filesystem::absolute(folder, error) / "").lexically_normal().parent_path();  // "." has a name
  const auto named = step_of_folder(path.filename().string());
  if (named && *named != step)
    fail<FileError>(
        "{}: holds step {}, its name says step {}: it was renamed or copied. Call it {}, or a copy anything but "
        "step-N.",
        folder, step, *named, step_folder_name(step));
}

std::string data_file_name(int64_t attempt, int64_t process, size_t part) {
  return fmt::format("{}{:04}-{:05}-{:04}{}", kData, attempt, process, part, kTensors);
}

std::optional<int64_t> attempt_of(std::string_view name) {
  const auto whole = name_before_crash(name);
  return attempt_of_data(whole.empty() ? name : whole);
}

bool is_of_save(std::string_view name) { return attempt_of(name) || name_before_crash(name) == kIndexFile; }

}  // namespace lockstep::trainer
