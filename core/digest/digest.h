#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// An order-sensitive fingerprint of bytes: XXH3, 128 bits. Not cryptographic: it finds accidents, not forgery.
struct Digest {
  uint64_t high = 0, low = 0;

  /// 32 hexadecimal digits, `high` first (xxHash's canonical form, what `xxhsum -H2` prints).
  std::string text() const;

  bool operator==(const Digest&) const = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  auto operator<=>(const Digest&) const = default;
};

Digest digest(std::span<const std::byte> bytes);
Digest digest(std::string_view bytes);

/// The digest of bytes that arrive in pieces; cutting them differently changes nothing.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(Digester&&) noexcept;
  Digester& operator=(Digester&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes);

  /// The digest of all bytes so far; more may follow.
  Digest result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
