#pragma once
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/metrics/step_metrics.h"

/// What a run tells about its steps: a line for people, a file of JSON lines for programs, a progress bar for a
/// terminal.
namespace lockstep::trainer {

/// "step  17/200  loss 3.1416  grad_norm 1.2345  lr 8.0e-04  5,120 tokens/s  512 MiB peak  1m02s"; no colour. Of a step
/// that was checked the speed is that with the check, "1,480 tokens/s checked"; where no peak is known, the memory is
/// "512 MiB now". 100 columns at most for 999 steps, 9,999 tokens/s, 999 MiB and an hour.
std::string log_line(const StepMetrics& metrics, int64_t total_steps);

/// "58s", "1m02s", "3h07m".
std::string duration_text(double seconds);

/// Resident memory of this process, now and at most so far; 0 where the system does not tell.
int64_t resident_bytes();
int64_t peak_resident_bytes();

/// Tokens a second over all the steps that were checked.
struct CheckedSpeed {
  double alone = 0;    ///< of the steps on the mesh
  double checked = 0;  ///< with all that checked them
};

/// None if no step was checked. REQUIRES: all steps have as many tokens.
std::optional<CheckedSpeed> checked_speed(std::span<const StepMetrics> steps);

/// "speed     5,120 tokens/s on the mesh alone, 1,480 with one device beside it"
std::string speed_line(const CheckedSpeed& speed);

/// Appends JSON lines to a file, one write a line, so that a reader never sees half of one.
class MetricsFile {
 public:
  /// For the steps from `first_step` on. A run that begins anew (1) finds a file of its own: an older one is renamed
  /// (move_aside). One that goes on finds each step before once: later ones, which it takes again, are removed, and so
  /// is what a crash left of a last line; of a step that is there twice the last line stays, the one that was gone on
  /// from. Lines that are not as json_line() writes them stay where they are. What is no regular file is only written
  /// to. FileError when the file cannot be opened or rewritten. REQUIRES: nobody else writes the file.
  MetricsFile(const std::string& path, int64_t first_step);
  /// FileError when the line cannot be written.
  void append(const StepMetrics& metrics);

 private:
  std::string path_;
  std::ofstream file_;
};

/// Whether progress may be drawn: standard error is a terminal, NO_COLOR is not set (or empty) and the run is not
/// quiet.
bool may_draw_progress(bool quiet);

/// A bar with the time left, redrawn in place at most ten times a second.
///
/// Lines for people that go to the same terminal must be printed between `clear` and the next `update`.
class ProgressBar {
 public:
  using Sink = std::function<void(std::string_view)>;
  ProgressBar(int64_t total, Sink sink);

  /// Step `done` is done; the last one will be in so many seconds.
  void update(int64_t done, double seconds_left);
  /// Erases the bar.
  void clear();

  /// "[#####-----] 50%  100/200  1m02s left"
  static std::string text(int64_t done, int64_t total, double seconds_left);

 private:
  using Clock = std::chrono::steady_clock;
  int64_t total_;
  Sink sink_;
  std::optional<Clock::time_point> drawn_;
};

}  // namespace lockstep::trainer
