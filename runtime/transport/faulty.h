#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/transport/transport.h"

namespace lockstep {

/// What to do to one message.
enum class FaultKind {
  kDrop,        ///< it never arrives
  kCorrupt,     ///< one bit of its payload flips
  kDelay,       ///< it arrives later; nothing else changes
  kReorder,     ///< the next message of the same pair overtakes it
  kWrongGroup,  ///< it claims to belong to another group
};

/// A transport that injects faults into the messages of another one, in the production path of collectives.
class FaultyTransport final : public Transport {
 public:
  /// Picks the fault of a message (by header, source and destination), or none.
  using Choose = std::function<std::optional<FaultKind>(const Message&)>;

  FaultyTransport(std::shared_ptr<Transport> inner, Choose choose)
      : inner_(std::move(inner)), choose_(std::move(choose)) {}

  void post(Message message) override;
  bool take(int source, int destination, Message& out) override { return inner_->take(source, destination, out); }
  void progress() override;

  /// How many faults were injected.
  int injected() const { return injected_; }

 private:
  void post_overtaken(int source, int destination);

  std::shared_ptr<Transport> inner_;
  Choose choose_;
  std::vector<Message> delayed_;    ///< posted at the next progress()
  std::vector<Message> overtaken_;  ///< posted after the next message of their pair
  int injected_ = 0;
};

}  // namespace lockstep
