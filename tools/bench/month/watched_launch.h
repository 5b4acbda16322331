#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

/// `lockstep` as a process beside this one, which dies with us.
class WatchedLaunch {
 public:
  /// What it says goes to the file `log`.
  WatchedLaunch(const std::vector<std::string>& arguments, const std::string& log);
  ~WatchedLaunch();
  WatchedLaunch(const WatchedLaunch&) = delete;
  WatchedLaunch& operator=(const WatchedLaunch&) = delete;

  bool runs();
  /// Waits for it. FileError with what it said unless it ended well.
  void require_success();
  /// The processes that it has started, in their order.
  std::vector<pid_t> ranks() const;

 private:
  std::string log_;
  pid_t id_ = -1;
  std::optional<int> status_;
};

/// The last step of a metrics.jsonl, and which file it is: one that goes on replaces it.
struct LastStep {
  int64_t step = 0;
  ino_t file = 0;
};
LastStep last_step(const std::string& path);

/// The sum of `checkpoint_seconds` over all its lines.
double checkpoint_seconds(const std::string& path);

}  // namespace lockstep::bench
