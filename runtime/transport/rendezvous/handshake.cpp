#include "runtime/transport/rendezvous/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr char kMagic[4] = {'L', 'S', 'H', '1'};

Proof mac(const std::string& token, std::span<const std::byte> bytes) {
  Proof proof;
  unsigned size = 0;
  const auto* done = ::HMAC(::EVP_sha256(), token.data(), static_cast<int>(token.size()),
                            reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                            reinterpret_cast<unsigned char*>(proof.data()), &size);
  LOCKSTEP_CHECK(done && size == proof.size());
  return proof;
}

template <class T>
void append(std::vector<std::byte>& bytes, const T* data, size_t count) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), first, first + count * sizeof(T));
}

}  // namespace

Nonce fresh_nonce() {
  Nonce nonce;
  LOCKSTEP_CHECK(::getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size()));
  return nonce;
}

std::array<std::byte, kHelloBytes> to_bytes(const Hello& hello) {
  std::array<std::byte, kHelloBytes> bytes;
  const auto world = static_cast<int32_t>(hello.world), rank = static_cast<int32_t>(hello.rank);
  std::memcpy(bytes.data(), kMagic, 4);
  std::memcpy(bytes.data() + 4, &world, 4);
  std::memcpy(bytes.data() + 8, &rank, 4);
  std::memcpy(bytes.data() + 12, hello.nonce.data(), hello.nonce.size());
  return bytes;
}

bool read_hello(std::span<const std::byte, kHelloBytes> bytes, Hello& hello) {
  int32_t world = 0, rank = 0;
  std::memcpy(&world, bytes.data() + 4, 4);
  std::memcpy(&rank, bytes.data() + 8, 4);
  std::memcpy(hello.nonce.data(), bytes.data() + 12, hello.nonce.size());
  hello.world = world;
  hello.rank = rank;
  return std::memcmp(bytes.data(), kMagic, 4) == 0;
}

Proof prove(const std::string& token, const char* role, const Hello& hello, int accepting_rank, const Nonce& nonce) {
  std::vector<std::byte> bytes;
  const auto said = to_bytes(hello);
  append(bytes, role, std::strlen(role) + 1);
  append(bytes, said.data(), said.size());
  append(bytes, &accepting_rank, 1);
  append(bytes, nonce.data(), nonce.size());
  return mac(token, bytes);
}

std::string to_hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sign(const std::string& token, const std::string& text) {
  return to_hexadecimal(mac(token, std::as_bytes(std::span(text))));
}

bool equal(std::span<const std::byte> left, std::span<const std::byte> right) {
  return left.size() == right.size() && ::CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

Acceptance::Verdict Acceptance::read_greeting(std::span<const std::byte> bytes, const std::string& token,
                                              std::vector<std::byte>& reply) {
  LOCKSTEP_CHECK(bytes.size() <= wanted());
  append(heard_, bytes.data(), bytes.size());
  if (wanted() > 0) return Verdict::kContinue;
  if (!answered_) return answer(token, reply);
  return equal(heard_, prove(token, "connects", hello_, rank_, nonce_)) ? Verdict::kProved : Verdict::kRefused;
}

Acceptance::Verdict Acceptance::answer(const std::string& token, std::vector<std::byte>& reply) {
  if (!read_hello(std::span<const std::byte, kHelloBytes>(heard_), hello_)) return Verdict::kRefused;
  if (hello_.world != world_ || hello_.rank <= rank_ || hello_.rank >= world_) return Verdict::kRefused;
  nonce_ = fresh_nonce();
  const auto proof = prove(token, "accepts", hello_, rank_, nonce_);
  append(reply, nonce_.data(), nonce_.size());
  append(reply, proof.data(), proof.size());
  answered_ = true;
  heard_.clear();
  return Verdict::kContinue;
}

}  // namespace lockstep
