#pragma once
#include <memory>

#include "runtime/transport/transport.h"

namespace lockstep {

/// XXH3-64 of bytes that come piece by piece. It finds accidents, not attacks.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void restart();
  void add(ConstSpan bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

uint64_t checksum_of(const Payload& payload);

/// What every transport says when a checksum is not that of the bytes.
[[noreturn]] void fail_damaged(int source, int destination, const MessageHeader& header);

}  // namespace lockstep
