#pragma once
#include <array>
#include <memory>
#include <vector>

#include "runtime/exchange_machine.h"

namespace lockstep {

/// The exchanges of a World that have begun and are not over, oldest first. Everything happens on the calling thread,
/// which looks after them between ops: advance().
///
/// Throws TransportError, of whichever exchange it befalls.
class ExchangesInFlight {
 public:
  explicit ExchangesInFlight(Transport& transport) : transport_(transport) {}

  bool empty() const { return machines_.empty(); }
  /// Begins an exchange. `announced`: nothing else is done until it is over.
  void begin(const std::shared_ptr<ExchangeMachine>& machine, bool announced);
  /// Moves what can move at once.
  void advance();
  /// Waits until all has arrived.
  void await(ExchangeMachine& machine);
  /// Waits until all that this rank has posted has left: it may compute for long before it looks here again, and others
  /// wait.
  void await_sent(ExchangeMachine& machine);

  /// Seconds that this rank has stood still for collectives of this kind: those of the two above.
  double waited(CollectiveKind kind) const { return waited_[static_cast<size_t>(kind)]; }

 private:
  template <class Done>
  void wait_until(const Done& done, ExchangeMachine& machine);

  Transport& transport_;
  std::vector<std::shared_ptr<ExchangeMachine>> machines_;
  std::array<double, kCollectiveKinds> waited_{};
};

}  // namespace lockstep
