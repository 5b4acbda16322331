#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/lockstep/arguments.h"
#include "tools/lockstep/launch/rank_process.h"

namespace lockstep::tool {

/// The ranks that a launch started, from the first to the last that ends.
class LaunchedRanks {
 public:
  /// `options.processes` of them. Their command is the one of `options`, and `more`.
  explicit LaunchedRanks(const LaunchOptions& options, const std::vector<std::string>& more = {});

  /// Until all have ended. SIGINT and SIGTERM are passed on, if an InterruptionHandler lives; one that ended a single
  /// rank before its first collective, too.
  ///
  /// When a rank is lost (killed, a bug, an error of a collective) the job cannot go on: ranks that have not noticed
  /// are ended half a second later; those that have, and all after any other failure, get `--grace` to write what they
  /// have. Ranks that save because of a signal take their time. A rank that stays stopped when another has ended is
  /// ended after half a minute.
  ///
  /// When `is_wanted_elsewhere` says so they get SIGTERM, once.
  void wait(const std::function<bool()>& is_wanted_elsewhere = [] { return false; });
  /// Whether they got it, and nobody else wanted them to end.
  bool was_wanted_elsewhere() const { return called_back_; }

  /// The most telling of all: a transport error is often only the echo of another rank's.
  ExitCode code() const;
  /// "ranks 1, 2: ..." for each different report of those that failed; rank 0 has spoken for itself.
  std::string reports() const;
  /// Whether a rank was lost.
  bool lost_one() const { return lost_at_.has_value(); }
  std::vector<RankStory> stories() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  bool any_runs() const;
  void wait_for_news() const;
  bool one_left_before_the_meeting() const;
  void forward_signal();
  void call_back();
  void note_failures();
  void hurry();

  std::vector<std::unique_ptr<RankProcess>> ranks_;
  Seconds grace_;
  bool forwarded_ = false, called_back_ = false;
  std::optional<Clock::time_point> failed_at_, lost_at_;
};

}  // namespace lockstep::tool
