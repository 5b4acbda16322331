#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/transport/wrapper.h"

namespace lockstep {

/// What to do to one message.
enum class FaultKind {
  kDrop,        ///< it never arrives
  kCorrupt,     ///< one bit of its payload flips
  kDelay,       ///< it arrives later; nothing else changes
  kReorder,     ///< the next message of the same pair overtakes it
  kWrongGroup,  ///< it claims to belong to another group
  kWrongKind,   ///< it claims to belong to a collective of another kind
  kWrongDtype,  ///< it claims to hold elements of another type
  kWrongBytes,  ///< it claims to be longer
};

/// A transport that injects faults into the messages of another one, in the production path of collectives.
class FaultyTransport final : public TransportWrapper {
 public:
  /// Picks the fault of a message (by header, source and destination), or none.
  using Choose = std::function<std::optional<FaultKind>(const Message&)>;

  FaultyTransport(std::shared_ptr<Transport> inner, Choose choose)
      : TransportWrapper(std::move(inner)), choose_(std::move(choose)) {}

  void post(Message message) override;
  void progress() override;
  bool is_sending() const override { return inner_->is_sending() || !delayed_.empty(); }

  /// How many faults were injected.
  int injected() const { return injected_; }

 private:
  void post_overtaken(int source, int destination);

  Choose choose_;
  std::vector<Message> delayed_;    ///< posted at the next progress()
  std::vector<Message> overtaken_;  ///< posted after the next message of their pair
  int injected_ = 0;
};

}  // namespace lockstep
