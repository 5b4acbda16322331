#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file_descriptor.h"

namespace lockstep::tool {

/// One rank's process, started by `lockstep launch`. It dies with us, whatever ends us.
class RankProcess {
 public:
  /// Runs `command` (the first is the executable) with these variables added; `inherited` stays open in it. Rank 0 has
  /// our standard streams; of the others stdout is dropped and stderr kept.
  RankProcess(int rank, const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
              int inherited);
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess();

  int rank() const { return rank_; }
  bool runs() const { return !status_; }
  void signal(int number) const;
  /// Reads what it has written, and whether it has ended.
  void poll();
  /// Readable when poll() has something to do; -1 when nothing is to come.
  int descriptor() const { return errors_.get(); }

  /// REQUIRES: !runs(). The exit code; kTransport if a signal killed it.
  ExitCode code() const;
  /// What it wrote to stderr, or by which signal it ended.
  std::string report() const;

 private:
  void read_errors();

  int rank_;
  pid_t id_ = -1;
  FileDescriptor errors_;
  std::string text_;
  std::optional<int> status_;
};

}  // namespace lockstep::tool
