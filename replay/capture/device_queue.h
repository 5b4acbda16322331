#pragma once
#include <cstddef>
#include <span>

#include "core/digest/digest.h"

namespace lockstep::replay {

/// What a device does with bytes in its memory, for who reads them there: in the order of calls, behind all that it was
/// given to do before, and before what it is given next. So the bytes may be written to, or freed, by later work at
/// once.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  /// Makes room for so many digests and bytes in the host's memory. What is there is lost. REQUIRES: nothing is
  /// enqueued.
  virtual void make_room(std::size_t digests, std::size_t bytes) = 0;

  /// Enqueues XXH3-128 of each piece of kTensorPieceBytes (tensor_pieces() of them); the first one's is to be
  /// digests()[place].
  virtual void digest(std::span<const std::byte> device_bytes, std::size_t place) = 0;

  /// Enqueues a copy to bytes()[place] and behind.
  virtual void copy(std::span<const std::byte> device_bytes, std::size_t place) = 0;

  /// Returns when all of it is done, and the first `digests` digests and all bytes are in the host's memory.
  virtual void wait(std::size_t digests) = 0;

  /// The room that there is. Until wait() it means nothing.
  virtual std::span<const Digest> digests() const = 0;
  virtual std::span<const std::byte> bytes() const = 0;
};

}  // namespace lockstep::replay
