#include "core/digest/digest.h"

#include <fmt/format.h>
#include <xxhash.h>
#if defined(__x86_64__)
#  include <xxh_x86dispatch.h>  // the calls below take the best instruction set of the machine
#endif

#include "core/digest/vectors_cleared.h"
#include "core/error.h"

namespace lockstep {
namespace {

Digest from_xxhash(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

}  // namespace

std::string Digest::text() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest digest(std::span<const std::byte> bytes) {
  const VectorsCleared after;
  return from_xxhash(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest(std::string_view bytes) { return digest(std::as_bytes(std::span(bytes))); }

struct Digester::State {
  XXH3_state_t* xxhash = XXH3_createState();
  State() {
    LOCKSTEP_CHECK(xxhash != nullptr);
    LOCKSTEP_CHECK(XXH3_128bits_reset(xxhash) == XXH_OK);
  }
  ~State() { XXH3_freeState(xxhash); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Digester::Digester() : state_(std::make_unique<State>()) {}
Digester::~Digester() = default;
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;

void Digester::update(std::span<const std::byte> bytes) {
  const VectorsCleared after;
  LOCKSTEP_CHECK(XXH3_128bits_update(state_->xxhash, bytes.data(), bytes.size()) == XXH_OK);
}

void Digester::update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }

Digest Digester::result() const {
  const VectorsCleared after;
  return from_xxhash(XXH3_128bits_digest(state_->xxhash));
}

}  // namespace lockstep
