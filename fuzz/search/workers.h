#pragma once
#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>

#include "core/files/file_descriptor.h"
#include "fuzz/search/board.h"

namespace lockstep::fuzz {

/// Processes that work, each on one core: RapidCheck draws in one thread of a process alone. They end with this one.
class Workers {
 public:
  Workers(Board& board, const Checks& checks, const SearchOptions& options, Clock::time_point end, Report report);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Takes what they have found, and looks after those that died or do not come back. False when all have ended.
  bool attend();

 private:
  struct Process {
    pid_t id = -1;
    FileDescriptor reports;  ///< lines of JSON
    std::string text;        ///< that came so far
    bool overdue = false;
  };

  void start(size_t worker, int64_t first);
  [[noreturn]] void run_child(size_t worker, int64_t first, int reports);
  void read_reports(Process& process);
  void take(const std::string& line);
  void end_if_overdue(size_t worker);
  void reap(size_t worker);
  void blame_case(size_t worker, const std::string& message);

  Board& board_;
  const Checks& checks_;
  const SearchOptions& options_;
  Clock::time_point end_;
  Report report_;
  std::vector<Process> processes_;
};

}  // namespace lockstep::fuzz
