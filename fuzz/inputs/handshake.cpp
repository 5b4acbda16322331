#include "runtime/transport/rendezvous/handshake.h"

#include <algorithm>

#include "fuzz/inputs/target.h"

namespace lockstep {

/// Whatever a stranger sends, in pieces of any size: it is never taken for a rank. The first byte says how large the
/// pieces are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string token = "a secret that the fuzzer does not know";
  if (size == 0) return 0;
  const size_t most = size_t{1} + data[0];
  auto rest = std::as_bytes(std::span(data + 1, size - 1));
  Acceptance acceptance(/*world=*/4, /*rank=*/1);
  while (!rest.empty()) {
    const auto piece = rest.first(std::min({rest.size(), most, acceptance.wanted()}));
    rest = rest.subspan(piece.size());
    std::vector<std::byte> reply;
    const auto verdict = acceptance.read_greeting(piece, token, reply);
    fuzz::require(verdict != Acceptance::Verdict::kProved, "a stranger is no rank");
    fuzz::require(reply.empty() || reply.size() == sizeof(Nonce) + sizeof(Proof), "one answer at most");
    if (verdict == Acceptance::Verdict::kRefused) {
      fuzz::require(reply.empty(), "nothing is sent to who is refused");
      break;
    }
  }
  return 0;
}

}  // namespace lockstep
