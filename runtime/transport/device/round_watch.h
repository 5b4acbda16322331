#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/transport/device/device_link.h"

namespace lockstep {

/// Looks, on a thread of its own, whether the rounds of a link end. A peer that has died or stalls in the middle of one
/// would leave this rank waiting for its device for ever: then the link is aborted, and check() says why.
class RoundWatch {
 public:
  /// `timeout`: for each round, from when the one before it has ended. Borrows the link.
  RoundWatch(DeviceLink& link, std::chrono::milliseconds timeout);
  /// Leaves rounds that are under way to the link.
  ~RoundWatch();
  RoundWatch(const RoundWatch&) = delete;
  RoundWatch& operator=(const RoundWatch&) = delete;

  /// To be called before each round is handed to the link: what it belongs to, and the ranks it is exchanged with.
  void begin(const MessageHeader& header, std::vector<int> peers);

  /// Of all rounds that have not ended.
  void set_timeout(std::chrono::milliseconds timeout);

  /// Throws TransportError, each time, once a round has failed: it names the round and how long it took.
  void check() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Round {
    MessageHeader header;
    std::vector<int> peers;
    Clock::time_point since;  ///< the device could not begin with it before
  };

  void run();
  void look(std::unique_lock<std::mutex>& lock);
  void forget(uint64_t ended);
  void give_up(const std::string& why);

  DeviceLink& link_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::milliseconds timeout_;  ///< guarded by mutex_, as all below
  std::deque<Round> rounds_;           ///< that have not ended, oldest first
  uint64_t ended_ = 0;
  bool ending_ = false;
  std::string failure_;
  std::atomic<bool> has_failed_ = false;
  std::thread thread_;  // last: everything is there when it starts
};

}  // namespace lockstep
