#pragma once
#include <chrono>
#include <string>

#include "tools/lockstep/reports/verify/verify_page.h"

namespace lockstep::tool {

/// The page of `--html` while a command runs: written again as results come, each time whole or not at all.
class PageFile {
 public:
  VerifyPage page;

  /// Without a path nothing is ever written.
  explicit PageFile(std::string path) : path_(std::move(path)) {}

  bool is_wanted() const { return !path_.empty(); }

  /// Writes it for the first time. FileError if that fails: before the work, and not after it.
  void begin();
  /// Writes what is known so far. That this fails is said on stderr once, and no reason to end the work. What is no
  /// regular file (/dev/stdout) waits for the end.
  void update();
  /// The same, if the last time was a while ago: for what comes every second.
  void update_now_and_then();
  /// The whole page. FileError if it cannot be written.
  void finish();
  /// What ended the command before its end. Does not throw.
  void end_by(const std::string& reason);

 private:
  void try_to_write();

  std::string path_;
  std::chrono::steady_clock::time_point written_{};
  bool has_failed_ = false;
};

}  // namespace lockstep::tool
