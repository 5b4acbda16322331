#pragma once
#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files/file_descriptor.h"
#include "runtime/transport/flight/flight_record.h"

namespace lockstep::tool {

/// What is known of a rank that has ended.
struct RankStory {
  int rank = 0;
  ExitCode code = ExitCode::kFine;  ///< kTransport if a signal killed it
  int signal = 0;                   ///< that killed it, unless that was the launcher's; 0: none
  bool ended_by_launcher = false;   ///< it did not end by itself
  bool stopped = false;             ///< by a signal such as SIGSTOP, when it was last seen running
  double ended = 0;                 ///< seconds of the steady clock
  std::string error;                ///< what it wrote to stderr, or what is known instead
  std::vector<FlightNote> notes;    ///< of its last collectives, oldest first

  const FlightNote* last() const { return notes.empty() ? nullptr : &notes.back(); }
};

/// One rank's process, started by `lockstep launch`. It dies with us, whatever ends us.
class RankProcess {
 public:
  /// Runs `command` (the first is the executable) with these variables added; `inherited` stay open in it. Rank 0 has
  /// our standard streams; of the others stdout is dropped and stderr kept.
  RankProcess(int rank, int world, const std::vector<std::string>& command,
              std::map<std::string, std::string> variables, std::vector<int> inherited);
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess();

  int rank() const { return rank_; }
  bool runs() const { return !status_; }
  void signal(int number) const;
  /// Kills it: it does not end by itself.
  void end();
  /// Reads what it has written, and whether it has ended.
  void poll();
  /// Readable when poll() has something to do; -1 when nothing is to come.
  int descriptor() const { return errors_.get(); }
  /// Since when it has been stopped; none if it is not.
  std::optional<std::chrono::steady_clock::time_point> stopped_since() const { return stopped_since_; }
  /// Whether it has begun a collective, as far as is known.
  bool has_begun() const { return !record_ || record_->last(); }
  /// Whether it ended by an error of a collective, or is about to.
  bool has_given_up() const { return record_ && record_->has_given_up(); }
  /// Whether it knows that it has to end.
  bool is_ending() const { return record_ && record_->is_ending(); }

  /// REQUIRES: !runs(). The exit code; kTransport if a signal killed it.
  ExitCode code() const;
  /// REQUIRES: !runs(). What it wrote to stderr, or by which signal it ended.
  std::string report() const;
  /// REQUIRES: !runs().
  RankStory story() const;

 private:
  void read_errors();
  void read_status();

  int rank_;
  pid_t id_ = -1;
  FileDescriptor errors_;
  std::string text_;
  std::unique_ptr<FlightRecord> record_;  ///< none if the system gives no memory for it
  std::optional<int> status_;
  bool ended_by_us_ = false;
  std::optional<std::chrono::steady_clock::time_point> stopped_since_;
  std::chrono::steady_clock::time_point ended_{};
};

}  // namespace lockstep::tool
