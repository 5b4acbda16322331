#pragma once
#include <list>

#include "runtime/transport/rendezvous/connect.h"
#include "runtime/transport/rendezvous/handshake.h"

namespace lockstep {

/// The side that accepts connections of higher ranks: peers are heard side by side, each for a few seconds.
class ConnectionListener {
 public:
  using Clock = std::chrono::steady_clock;

  ConnectionListener(const Membership& me, const Listeners& listeners, Clock::time_point end);

  /// One connection per higher rank, in the places of their ranks. Throws TransportError naming who is missing.
  std::vector<Connection> run();

 private:
  /// Somebody who has connected, until it has proved itself.
  struct PendingConnection {
    Connection connection;
    Clock::time_point end;
    Acceptance acceptance;
    bool local;
  };

  std::vector<int> missing() const;
  void wait() const;
  void admit(const FileDescriptor& listener, bool local);
  /// Whether it may stay.
  bool read_greeting(PendingConnection& peer);
  void welcome(PendingConnection& peer);

  const Membership& me_;
  const Listeners& listeners_;
  Clock::time_point end_;
  std::vector<Connection> connections_;
  std::list<PendingConnection> pending_;
};

}  // namespace lockstep
