#include "replay/store/recording_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "core/mesh_text.h"
#include "replay/store/recording_file.h"

namespace lockstep::replay {
namespace {

namespace fs = std::filesystem;

/// The rank of "rank3.index".
std::optional<int32_t> rank_of_index(const std::string& name) {
  constexpr std::string_view kPrefix = "rank";
  if (!name.starts_with(kPrefix)) return {};
  int32_t rank = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), rank);
  return rank >= 0 && rank < kMaxRanks && name == index_file_name(rank) ? std::optional(rank) : std::nullopt;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.push_back(entry.path().filename().string());
  if (error) fail<BadInput>("{} is no recording: {}", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

Bytes allocate(uint64_t size, const std::string& path) {
  try {
    return Bytes(size);
  } catch (const std::exception&) {  // bad_alloc or length_error
    fail<FileError>("{} does not fit into memory: {} bytes", path, size);
  }
}

/// Whether it looks like a file that RecordingWriter makes, temporary ones included.
bool is_step_file(const std::string& name) { return name.starts_with("rank") && name.find(".h5") != name.npos; }

}  // namespace

RecordingFolder::RecordingFolder(std::string path) : path_(std::move(path)) {
  for (const auto& name : files_in(path_))
    if (const auto rank = rank_of_index(name)) read_rank(*rank);
  if (ranks_.empty()) fail<BadInput>("{} is no recording: no rank*.index in it", path_);
}

void RecordingFolder::read_rank(int32_t rank) {
  auto& into = ranks_[rank];
  const auto index_path = path_ + "/" + index_file_name(rank);
  try {
    std::error_code error;
    if (!fs::is_regular_file(index_path, error)) fail<FileError>("{} is no file", index_path);
    auto index = read_index(index_path, rank);
    into.damage = std::move(index.damage);
    into.torn = index.torn;
    for (auto& entry : index.entries) {
      named_.push_back(entry.file);
      into.steps.insert_or_assign(entry.step, std::move(entry));
    }
  } catch (const FileError& error) {
    into.damage.push_back(fmt::format("{}: all steps of rank {} are lost", error.what(), rank));
  }
}

std::vector<int32_t> RecordingFolder::ranks() const {
  std::vector<int32_t> ranks;
  for (const auto& [rank, unused] : ranks_) ranks.push_back(rank);
  return ranks;
}

std::vector<int64_t> RecordingFolder::steps(int32_t rank) const {
  std::vector<int64_t> steps;
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return steps;
  for (const auto& [step, unused] : found->second.steps) steps.push_back(step);
  return steps;
}

const IndexEntry& RecordingFolder::entry(int32_t rank, int64_t step) const {
  const auto of_rank = ranks_.find(rank);
  if (of_rank == ranks_.end()) fail<BadInput>("{} has no rank {}, only {}", path_, rank, fmt::join(ranks(), ", "));
  const auto& steps = of_rank->second.steps;
  const auto found = steps.find(step);
  if (found != steps.end()) return found->second;
  if (steps.empty()) fail<BadInput>("{} has no step of rank {}", path_, rank);
  fail<BadInput>("{} has no step {} of rank {}; it has {} between {} and {}", path_, step, rank, steps.size(),
                 steps.begin()->first, steps.rbegin()->first);
}

Bytes RecordingFolder::read_bytes(const IndexEntry& entry) const {
  const auto path = file(entry);
  const RandomAccessFile opened(path);
  if (static_cast<uint64_t>(opened.size()) != entry.bytes)
    fail<FileError>("{} is damaged: {} bytes, {} were written", path, opened.size(), entry.bytes);
  auto bytes = allocate(entry.bytes, path);
  opened.read(0, bytes);
  if (digest(bytes) != entry.digest) fail<FileError>("{} is damaged: its bytes do not match their digest", path);
  return bytes;
}

StepRecording RecordingFolder::read(int32_t rank, int64_t step) const {
  const auto& line = entry(rank, step);
  const auto bytes = read_bytes(line);
  auto r = from_file(bytes, file(line));
  const IndexEntry found{r.rank,     r.world,    digest(r.job), r.step,   r.has_state,
                         r.complete, line.bytes, line.digest,   line.file};
  if (found != line) fail<FileError>("{} is not the step that the index says", file(line));
  return r;
}

int64_t RecordingFolder::first_with_state(int32_t rank, int64_t step) const {
  const auto* line = &entry(rank, step);
  const auto& steps = ranks_.at(rank).steps;
  for (auto at = step; !line->has_state; line = &steps.at(--at)) {
    const auto before = steps.find(at - 1);
    if (before == steps.end())
      fail<FileError>(
          "{}: step {} of rank {} cannot be replayed: step {} is not recorded, and no step from {} on has a state",
          path_, step, rank, at - 1, at);
    if (!before->second.complete)
      fail<FileError>(
          "{}: step {} of rank {} cannot be replayed: step {} ended early, and no step from {} on has a state", path_,
          step, rank, at - 1, at);
  }
  return line->step;
}

std::vector<std::string> RecordingFolder::damage() const {
  std::vector<std::string> lines;
  for (const auto& [rank, content] : ranks_) {
    lines.insert(lines.end(), content.damage.begin(), content.damage.end());
    for (const auto& [step, line] : content.steps) {
      try {
        read_bytes(line);
      } catch (const FileError& error) {
        lines.push_back(fmt::format("{}: step {} of rank {} is lost", error.what(), step, rank));
      }
    }
  }
  return lines;
}

std::vector<std::string> RecordingFolder::leftovers() const {
  std::vector<std::string> lines;
  for (const auto& [rank, content] : ranks_)
    if (content.torn > 0)
      lines.push_back(fmt::format("{}/{}: {} bytes of a line behind the last whole one", path_, index_file_name(rank),
                                  content.torn));
  for (const auto& name : files_in(path_))
    if (is_step_file(name) && std::find(named_.begin(), named_.end(), name) == named_.end())
      lines.push_back(fmt::format("{}/{}: of no acknowledged step", path_, name));
  return lines;
}

}  // namespace lockstep::replay
