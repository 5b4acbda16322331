#include "trainer/data/data_sources.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMillion = 1'000'000;  ///< weights are read as so many parts
constexpr int64_t kMostWeight = 1 << 20;

struct Entry {
  std::string path;
  std::optional<int64_t> millionths;
};

bool exists(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}

/// "0.25" -> 250000; none for what is no such number.
std::optional<int64_t> millionths_of(std::string_view text) {
  const auto dot = std::min(text.find('.'), text.size());
  const auto whole = text.substr(0, dot), places = dot < text.size() ? text.substr(dot + 1) : std::string_view{};
  const auto digits = [](std::string_view part) { return part.find_first_not_of("0123456789") == part.npos; };
  if (whole.empty() || whole.size() > 7 || places.size() > 6 || !digits(whole) || !digits(places)) return std::nullopt;
  if (dot < text.size() && places.empty()) return std::nullopt;
  const auto padded = std::string(places) + std::string(6 - places.size(), '0');
  return std::stoll(std::string(whole)) * kMillion + std::stoll(padded);
}

/// What stands behind the last colon is a weight if it begins as a number does.
Entry entry_of(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos || colon + 1 == text.size()) return {text, std::nullopt};
  const auto behind = text.substr(colon + 1);
  if (behind.find_first_not_of("0123456789.+-eE") != behind.npos) return {text, std::nullopt};
  const auto path = text.substr(0, colon);
  if (exists(text))
    fail<BadInput>("training.dataset_path \"{}\" is a file, and {} with a weight; rename it.", text, path);
  const auto millionths = millionths_of(behind);
  if (!millionths || *millionths == 0)
    fail<BadInput>(
        "training.dataset_path \"{}\": the weight {} must be a decimal number above 0, of at most six places.", text,
        behind);
  return {path, millionths};
}

/// Those in the glob's folder whose names fit, or all .bin files of a folder.
std::vector<std::string> files_in(const fs::path& folder, const std::string& pattern) {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& each : fs::directory_iterator(folder.empty() ? "." : folder, none))
    if (each.is_regular_file(none) && ::fnmatch(pattern.c_str(), each.path().filename().c_str(), FNM_PERIOD) == 0)
      files.push_back((folder / each.path().filename()).string());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) return files_in(path, "*.bin");
  const auto name = fs::path(path).filename().string();
  if (exists(path) || name.find_first_of("*?") == name.npos) return {path};  // one that is missing is told when opened
  return files_in(fs::path(path).parent_path(), name);
}

/// Whole numbers of the same proportions, as small as they get.
void reduce(std::vector<DataSource>& sources) {
  int64_t divisor = 0, sum = 0;
  for (const auto& source : sources) divisor = std::gcd(divisor, source.weight);
  for (auto& source : sources) sum += source.weight /= divisor;
  if (sum > kMostWeight)
    fail<BadInput>("training.dataset_path: the weights are {} parts of a whole, {} are the most; choose rounder ones.",
                   sum, kMostWeight);
}

void require_no_file_twice(const std::vector<DataSource>& sources) {
  std::set<std::string> seen;
  for (const auto& source : sources)
    for (const auto& file : source.files) {
      std::error_code none;
      const auto real = fs::weakly_canonical(file, none).string();
      if (!seen.insert(real).second)
        fail<BadInput>("training.dataset_path \"{}\": {} occurs twice; give it a larger weight instead.",
                       source.written, file);
    }
}

std::vector<DataSource> as_one(const std::vector<DataSource>& sources) {
  DataSource all{sources[0].written, {}, 1};
  for (const auto& source : sources) all.files.insert(all.files.end(), source.files.begin(), source.files.end());
  return {all};
}

}  // namespace

std::vector<DataSource> data_sources(const std::vector<std::string>& entries) {
  if (entries.empty()) fail<BadInput>("training.dataset_path is not set; it names the data to train on.");
  std::vector<DataSource> sources;
  size_t weighted = 0;
  for (const auto& text : entries) {
    const auto entry = entry_of(text);
    sources.push_back({text, files_of(entry.path), entry.millionths.value_or(1)});
    if (entry.millionths) ++weighted;
    if (sources.back().files.empty())
      fail<BadInput>(
          "training.dataset_path \"{}\": there is no such file of tokens{}.", text,
          exists(entry.path) ? " (of a folder its .bin files; lockstep data prepare makes them of documents)" : "");
  }
  if (weighted != 0 && weighted != entries.size())
    fail<BadInput>("training.dataset_path: {} of {} entries have a weight; give all of them one (\"PATH:WEIGHT\").",
                   weighted, entries.size());
  require_no_file_twice(sources);
  if (weighted == 0) return as_one(sources);
  reduce(sources);
  return sources;
}

}  // namespace lockstep::trainer
