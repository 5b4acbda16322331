#pragma once
#include <list>

#include "runtime/transport/connect.h"
#include "runtime/transport/handshake.h"

namespace lockstep {

/// The side that accepts connections of higher ranks: visitors are heard side by side, each for a few seconds.
class Reception {
 public:
  using Clock = std::chrono::steady_clock;

  Reception(const Membership& me, const Listeners& listeners, Clock::time_point end);

  /// One connection per higher rank, in the places of their ranks. Throws TransportError naming who is missing.
  std::vector<Connection> run();

 private:
  /// Somebody who has connected, until it has proved itself.
  struct Visitor {
    Connection connection;
    Clock::time_point end;
    Acceptance acceptance;
    bool local;
  };

  std::vector<int> missing() const;
  void wait() const;
  void admit(const FileDescriptor& listener, bool local);
  /// Whether it may stay.
  bool hear(Visitor& visitor);
  void welcome(Visitor& visitor);

  const Membership& me_;
  const Listeners& listeners_;
  Clock::time_point end_;
  std::vector<Connection> connections_;
  std::list<Visitor> visitors_;
};

}  // namespace lockstep
