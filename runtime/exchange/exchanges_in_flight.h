#pragma once
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/context/world.h"
#include "runtime/exchange/message_exchange.h"

namespace lockstep {

/// The exchanges of a World that have begun and are not over, oldest first. Everything happens on the calling thread,
/// which looks after them between ops: advance().
///
/// Throws TransportError, of whichever exchange it befalls.
class ExchangesInFlight {
 public:
  /// A World::part(). REQUIRES: World::transport().
  explicit ExchangesInFlight(World& world);

  bool empty() const { return exchanges_.empty(); }
  /// Whether nothing is there to move: of an exchange that is over for this rank, others may still have to get theirs.
  bool idle() const { return exchanges_.empty() && !transport_.is_sending(); }
  /// Begins an exchange. `announced`: nothing else is done until it is over.
  void begin(const std::shared_ptr<MessageExchange>& machine, bool announced);
  /// Moves what can move at once.
  void advance();
  /// Waits until all has arrived.
  void await(MessageExchange& machine);
  /// Waits until what one member sends has arrived (PendingExchange::piece).
  void await_piece(MessageExchange& machine, size_t member);
  /// Waits until all that this rank has posted has left: it may compute for long before it looks here again, and others
  /// wait.
  void await_sent(MessageExchange& machine);

  /// Seconds that this rank has stood still for collectives of this kind: those of the two above.
  double waited(CollectiveKind kind) const { return waited_[static_cast<size_t>(kind)]; }
  double waited() const { return std::accumulate(waited_.begin(), waited_.end(), 0.0); }

 private:
  template <class Done>
  void wait_until(const Done& done, MessageExchange& machine);

  Transport& transport_;
  std::vector<std::shared_ptr<MessageExchange>> exchanges_;
  std::array<double, kCollectiveKinds> waited_{};
};

/// Lets what is under way in `world` move, as far as it can at once; after every op.
inline void advance_exchanges(World& world) {
  if (!world.transport()) return;
  if (auto& exchanges = world.part<ExchangesInFlight>(); !exchanges.idle()) exchanges.advance();
}

}  // namespace lockstep
