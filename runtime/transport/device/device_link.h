#pragma once
#include <span>
#include <vector>

#include "runtime/transport/transport.h"

namespace lockstep {

/// What one rank sends to another, or gets from it, in a round: parts of device memory, cut alike on both sides.
struct DeviceSend {
  int peer = 0;
  std::vector<ConstSpan> parts;
};
struct DeviceReceive {
  int peer = 0;
  std::vector<MutableSpan> parts;
};

/// Moves bytes between the device memories of ranks, in rounds that all ranks of a group begin in the same order.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  /// Enqueues a round behind what this rank's device has been given to do, and before what it is given next: the
  /// memory may be read, written and freed by later work at once. Throws TransportError.
  virtual void exchange(std::span<const DeviceSend> sends, std::span<const DeviceReceive> receives) = 0;

  /// How many rounds the device has ended: they end in their order. From any thread. Throws TransportError with what
  /// the link has noticed by itself, such as a peer that is gone.
  virtual uint64_t ended_rounds() = 0;

  /// Ends rounds where they are: who waits for the device, or in exchange(), goes on, with bytes that mean nothing.
  /// Later rounds are refused with TransportError. From any thread, but not during ended_rounds().
  virtual void abort() = 0;
};

}  // namespace lockstep
