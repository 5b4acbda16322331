#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "runtime/transport/transport.h"

namespace lockstep {

/// All ranks in one process. A seeded scheduler decides in which order messages of different pairs arrive, in virtual
/// time: progress() delivers one pending message. Several threads may share one (each driving some of the ranks); a
/// thread that has nothing to do waits for the others.
class SimulatedTransport final : public Transport {
 public:
  /// `driver_count`: how many threads call progress(). When all of them wait and nothing is in flight, the run is
  /// stuck, and each gets a TransportError.
  explicit SimulatedTransport(uint64_t seed, int driver_count = 1) : random_(seed), drivers_(driver_count) {}

  /// Copies the bytes: they may be delivered long after the collective that posted them.
  void post(Message message) override;
  std::optional<MessageHeader> arrived(int source, int destination) override;
  bool receive(int source, int destination, std::span<const MutableSpan> parts) override;
  void progress() override;

  /// Delivers one message: its source and destination. None if nothing is in flight. For who decides by himself whose
  /// turn it is, instead of progress().
  std::optional<std::pair<int, int>> deliver();

  /// This driver will not call again: its program has ended, or failed. Others that wait for it get their error.
  void leave();

 private:
  using Pair = std::pair<int, int>;
  struct Parcel {
    MessageHeader header;
    Bytes bytes;
    uint64_t checksum;
  };
  Parcel take(int source, int destination);
  std::optional<Pair> deliver_one();
  [[noreturn]] void fail_stuck() const;
  void wake_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::map<Pair, std::deque<Parcel>> in_flight_, arrived_;
  int drivers_;
  int waiting_ = 0;  ///< drivers that have seen every event so far and have nothing to do
  uint64_t events_ = 0;
  /// The event number at which a driver first looked in vain since it last called progress(): what came later may be
  /// what it looked for.
  std::map<std::thread::id, uint64_t> looked_;
  std::map<int, std::set<int>> missed_;  ///< whom a rank waits for
  bool stuck_ = false;
};

}  // namespace lockstep
