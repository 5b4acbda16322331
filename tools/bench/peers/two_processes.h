#pragma once
#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "core/files/file_descriptor.h"
#include "runtime/transport/stream.h"

namespace lockstep::bench {

/// How often one of the two has come to a meeting.
struct Arrivals {
  alignas(64) std::atomic<uint64_t> times = 0;
};
using Meetings = std::array<Arrivals, 2>;

/// What connects one process of two to the other.
struct Ends {
  int rank;
  std::unique_ptr<Stream> memory, tcp;  ///< as training's
  FileDescriptor plain;                 ///< a TCP connection on loopback
  FileDescriptor unpaced;               ///< another, with the same congestion control as `tcp` (address.h)
  std::span<std::byte> mine, theirs;    ///< memory that both map, kSharedBytes each
  Meetings* meetings;                   ///< in such memory, too
};
inline constexpr size_t kSharedBytes = size_t{1} << 24;

/// This process and a child, which ends with it. Both do the same work, as often.
class TwoProcesses {
 public:
  using Works = std::vector<std::function<void()>>;

  /// `make` runs in both, after the fork: no other thread may be running before. Throws TransportError.
  explicit TwoProcesses(const std::function<Works(Ends)>& make);
  TwoProcesses(const TwoProcesses&) = delete;
  TwoProcesses& operator=(const TwoProcesses&) = delete;
  ~TwoProcesses();

  /// Does works[index] so many times, in both; returns when this one is done.
  void run(size_t index, int times);
  /// Does `work` in this process alone, which may then use all cores.
  void run_alone(const std::function<void()>& work) const;

 private:
  [[noreturn]] void follow() const;

  FileDescriptor commands_;
  pid_t child_ = -1;
  Works works_;
  cpu_set_t all_cores_{};
};

}  // namespace lockstep::bench
