#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// What two ranks of one job do before they trust a connection: each proves that it knows the job's token without
/// sending it (HMAC-SHA-256 over both sides' nonces; RFC 2104).
///
///   the rank that connects sends       magic "LSH1", world, own rank, nonce      (28 bytes)
///   the other answers with             nonce, proof("accepts")                   (48 bytes)
///   and gets                           proof("connects")                         (32 bytes)
///
/// It keeps strangers out. It does not encrypt, and what follows is not authenticated: who can change packets between
/// hosts can change numbers (checksums only find accidents).
struct Hello {
  int world = 0, rank = 0;
  std::array<std::byte, 16> nonce{};
};

using Nonce = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 32>;
inline constexpr size_t kHelloBytes = 28;

/// Random bytes from the system.
Nonce fresh_nonce();

std::array<std::byte, kHelloBytes> to_bytes(const Hello& hello);
/// Whether the bytes begin as a hello does.
bool read_hello(std::span<const std::byte, kHelloBytes> bytes, Hello& hello);

/// HMAC of `role`, the hello, the accepting rank and its nonce.
Proof prove(const std::string& token, const char* role, const Hello& hello, int accepting_rank, const Nonce& nonce);

std::string to_hexadecimal(std::span<const std::byte> bytes);

/// HMAC of any text, in hexadecimal.
std::string sign(const std::string& token, const std::string& text);

/// In a time that does not depend on where they differ.
bool equal(std::span<const std::byte> left, std::span<const std::byte> right);

/// The side that accepts, fed with whatever a stranger sends.
class Acceptance {
 public:
  enum class Verdict { kContinue, kRefused, kProved };

  /// We are `rank`; only higher ranks connect to us.
  Acceptance(int world, int rank) : world_(world), rank_(rank) {}

  /// How many bytes are missing for the next step; what comes after them is not ours to read.
  size_t wanted() const { return (answered_ ? sizeof(Proof) : kHelloBytes) - heard_.size(); }

  /// Takes up to wanted() bytes; `reply` is to be sent back. Not to be called again after another verdict than
  /// kContinue.
  Verdict read_greeting(std::span<const std::byte> bytes, const std::string& token, std::vector<std::byte>& reply);

  /// Who it is. REQUIRES: kProved.
  int peer() const { return hello_.rank; }

 private:
  Verdict answer(const std::string& token, std::vector<std::byte>& reply);

  int world_, rank_;
  bool answered_ = false;
  std::vector<std::byte> heard_;
  Hello hello_;
  Nonce nonce_{};
};

}  // namespace lockstep
