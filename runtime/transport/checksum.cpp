#include "runtime/transport/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the state's size
#include <xxhash.h>
#if defined(__x86_64__)
#  include <xxh_x86dispatch.h>  // the same values from the widest instructions there are, two to three times as fast
#endif

#include "core/digest/vectors_cleared.h"
#include "core/error.h"

namespace lockstep {

struct Checksum::State {
  XXH3_state_t hash;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { restart(); }
Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::restart() { XXH3_64bits_reset(&state_->hash); }

void Checksum::add(ConstSpan bytes) {
  const VectorsCleared after;
  XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
}

uint64_t Checksum::value() const {
  const VectorsCleared after;
  return XXH3_64bits_digest(&state_->hash);
}

uint64_t checksum_of(const Payload& payload) {
  Checksum checksum;
  for (const auto& part : payload.parts) checksum.add(part);
  return checksum.value();
}

void fail_damaged(int source, int destination, const MessageHeader& header) {
  fail<TransportError>("rank {} got {} damaged bytes from rank {} in {}", destination, header.bytes, source,
                       header.text());
}

}  // namespace lockstep
