#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "core/files/file_descriptor.h"

/// A process for work on bytes that nobody vouches for: it may compute and answer, and nothing else.
namespace lockstep::replay {

/// What becomes of a system call that the work does not need for memory, its answer and its end. None is ever made.
enum class OtherCalls : uint8_t {
  kKill,    ///< the process is killed: for HDF5, which needs none
  kRefuse,  ///< it fails (EPERM), and memory may hold code: for LibTorch, which asks for this and that and compiles
};

struct ReaderLimits {
  uint64_t memory = 0;             ///< bytes of address space beside those in use before; not under a sanitizer
  unsigned processor_seconds = 0;  ///< of its own time; then it is killed
  std::chrono::seconds wall{};     ///< of everybody's time; then it is killed
  uint64_t answer = 0;             ///< bytes of its answer
  OtherCalls others = OtherCalls::kKill;
  const char* verb = "read";    ///< what errors say that it cannot be
  const char* noun = "reader";  ///< what errors call the process
};

/// For a reader of a file of so many bytes: 256 MiB and twice the file, 2 s and 1 s per 128 MiB, ten times that by the
/// clock, an answer no longer than the file and 64 KiB.
ReaderLimits limits_for(std::size_t file_bytes);

/// For one op on operands of so many bytes: 2 GiB and 16 times those, 2 s and 1 s per MiB, ten times that by the clock,
/// an answer of 1 MiB.
ReaderLimits limits_for_op(std::size_t operand_bytes);

/// A child of this process, a fork without exec: it sees what the parent had in memory, and `work` runs in it under a
/// seccomp filter that lets it get memory, write to one pipe and end. No file exists for it, and any other system
/// call (socket, exec, fork ...) kills it or fails (OtherCalls). It has no descriptor but the pipe, and it dies with
/// the thread that made it.
class ReaderProcess {
 public:
  /// Forks. REQUIRES: whatever locks `work` would take are held, or nobody's.
  ReaderProcess(const std::function<std::string()>& work, const ReaderLimits& limits);

  /// Kills and reaps.
  ~ReaderProcess();
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  /// What `work` returned; to be called once. Throws FileError with the text of an exception that left `work`, or if
  /// the child crashed, was killed, took too long or said too much.
  std::string answer();

 private:
  std::string read_all();
  bool wait_readable() const;
  int wait_status();
  std::string why_it_died(int status) const;

  ReaderLimits limits_;
  std::chrono::steady_clock::time_point deadline_;
  FileDescriptor pipe_;
  pid_t child_ = -1;  ///< -1 once reaped
};

}  // namespace lockstep::replay
