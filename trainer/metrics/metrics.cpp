#include "trainer/metrics/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/files/move_aside.h"
#include "core/files/proc_value.h"
#include "core/files/text_lines.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kBarWidth = 24;
constexpr auto kRedrawAfter = std::chrono::milliseconds(100);

/// 5120 -> "5,120".
std::string grouped(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  auto text = fmt::format("{:.0f}", value);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > (text[0] == '-' ? 1 : 0); at -= 3)
    text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

/// What the run as a whole does, so that it agrees with the time that has passed.
std::string speed_text(const StepMetrics& metrics) {
  if (const auto& checked = metrics.checked_tokens_per_second) return grouped(*checked) + " tokens/s checked";
  return grouped(metrics.tokens_per_second) + " tokens/s";
}

std::string memory_text(const StepMetrics& metrics) {
  if (metrics.knows_gpu()) return fmt::format("{} MiB GPU peak", metrics.gpu->peak_allocated_bytes / kMebibyte);
  const bool has_peak = metrics.peak_memory_bytes > 0;
  return fmt::format("{} MiB {}", (has_peak ? metrics.peak_memory_bytes : metrics.memory_bytes) / kMebibyte,
                     has_peak ? "peak" : "now");
}

constexpr std::string_view kLineStart = R"({"step":)";

/// Of a line as json_line() writes it; none for any other.
std::optional<int64_t> step_of(const TextLine& line) {
  if (!line.head.starts_with(kLineStart) || line.last != '}') return std::nullopt;
  const auto* end = line.head.data() + line.head.size();
  int64_t step = 0;
  const auto result = std::from_chars(line.head.data() + kLineStart.size(), end, step);
  return result.ec == std::errc{} && result.ptr != end && *result.ptr == ',' ? std::optional(step) : std::nullopt;
}

/// What stays of a file of metrics for a run that goes on.
class KeptLines {
 public:
  explicit KeptLines(int64_t first_step) : first_step_(first_step) {}

  void add(const TextLine& line) {
    if (!line.is_whole) return;
    const auto step = step_of(line);
    if (!step) return add_range(line.range);
    for (; !steps_.empty() && steps_.back().step >= *step; steps_.pop_back()) ranges_[steps_.back().range] = {};
    if (*step >= first_step_) return;
    steps_.push_back({*step, ranges_.size()});
    ranges_.push_back(line.range);
  }

  int64_t bytes() const {
    int64_t bytes = 0;
    for (const auto& range : ranges_) bytes += range.end - range.begin;
    return bytes;
  }
  const std::vector<FileRange>& ranges() const { return ranges_; }

 private:
  struct Step {
    int64_t step;
    size_t range;
  };

  /// Of lines that are no steps' there may be any number.
  void add_range(FileRange range) {
    const bool follows_a_step = !steps_.empty() && steps_.back().range + 1 == ranges_.size();
    if (!follows_a_step && !ranges_.empty() && ranges_.back().end == range.begin)
      ranges_.back().end = range.end;
    else
      ranges_.push_back(range);
  }

  int64_t first_step_;
  std::vector<FileRange> ranges_;
  std::vector<Step> steps_;  ///< ascending
};

void keep_steps_before(int64_t first_step, const std::string& path) {
  const RandomAccessFile file(path);
  KeptLines kept(first_step);
  for_each_line(file, [&](const TextLine& line) { kept.add(line); });
  if (kept.bytes() != file.size()) keep_ranges(file, kept.ranges());
}

/// Gives the path back, with what is there made ready.
const std::string& prepared(const std::string& path, int64_t first_step) {
  std::error_code error;
  const bool holds_something =
      std::filesystem::is_regular_file(path, error) && std::filesystem::file_size(path, error) > 0;
  if (holds_something && first_step > 1) keep_steps_before(first_step, path);
  if (holds_something && first_step <= 1) move_aside(path);
  return path;
}

}  // namespace

std::string log_line(const StepMetrics& metrics, int64_t total_steps) {
  const auto width = fmt::formatted_size("{}", total_steps);
  return fmt::format("step {:>{}}/{}  loss {:.4f}  grad_norm {:.4f}  lr {:.1e}  {}  {}  {}", metrics.step, width,
                     total_steps, metrics.loss, metrics.grad_norm, metrics.learning_rate, speed_text(metrics),
                     memory_text(metrics), duration_text(metrics.seconds));
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e9) return "?";
  const auto whole = std::llround(std::max(seconds, 0.0));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  file >> total_pages >> resident_pages;
  return file ? resident_pages * sysconf(_SC_PAGESIZE) : 0;
}

/// "VmHWM:	  731234 kB". Not getrusage(): its peak is also that of what ran in this process before exec().
int64_t peak_resident_bytes() {
  const auto text = proc_value("/proc/self/status", "VmHWM");
  int64_t kibibytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), kibibytes);
  return kibibytes * 1024;
}

std::optional<CheckedSpeed> checked_speed(std::span<const StepMetrics> steps) {
  double count = 0, alone = 0, checked = 0;  // seconds of a token
  for (const auto& step : steps) {
    if (!step.checked_tokens_per_second) continue;
    ++count;
    alone += 1 / step.tokens_per_second;
    checked += 1 / *step.checked_tokens_per_second;
  }
  if (count <= 0) return std::nullopt;
  return CheckedSpeed{count / alone, count / checked};
}

std::string speed_line(const CheckedSpeed& speed) {
  return fmt::format("speed     {} tokens/s on the mesh alone, {} with one device beside it", grouped(speed.alone),
                     grouped(speed.checked));
}

MetricsFile::MetricsFile(const std::string& path, int64_t first_step)
    : path_(path), file_(prepared(path, first_step), std::ios::app) {
  if (!file_) fail<FileError>("{}: cannot be opened for writing.", path);
}

void MetricsFile::append(const StepMetrics& metrics) {
  file_ << json_line(metrics) + "\n" << std::flush;
  if (!file_) fail<FileError>("{}: step {} cannot be written; is the disk full?", path_, metrics.step);
}

bool may_draw_progress(bool quiet) {
  const char* no_color = std::getenv("NO_COLOR");
  return !quiet && !(no_color && *no_color) && isatty(STDERR_FILENO) == 1;
}

ProgressBar::ProgressBar(int64_t total, Sink sink) : total_(total), sink_(std::move(sink)) {}

void ProgressBar::update(int64_t done, double seconds_left) {
  const auto now = Clock::now();
  if (drawn_ && now - *drawn_ < kRedrawAfter && done < total_) return;
  drawn_ = now;
  sink_("\r\033[K" + text(done, total_, seconds_left));
}

void ProgressBar::clear() {
  if (drawn_) sink_("\r\033[K");
  drawn_.reset();
}

std::string ProgressBar::text(int64_t done, int64_t total, double seconds_left) {
  const auto full = total > 0 ? std::clamp<int64_t>(done * kBarWidth / total, 0, kBarWidth) : 0;
  return fmt::format("[{}{}] {}%  {}/{}  {} left", std::string(static_cast<size_t>(full), '#'),
                     std::string(static_cast<size_t>(kBarWidth - full), '-'), total > 0 ? done * 100 / total : 0, done,
                     total, duration_text(seconds_left));
}

}  // namespace lockstep::trainer
