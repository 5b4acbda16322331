#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace lockstep {

/// The first of `places` that no token of packed documents has: rows of `length` tokens, of each how many of its
/// document are in front of it. A document begins with 0, and each row begins one.
template <class Integer>
std::optional<std::size_t> first_wrong_place(std::span<const Integer> places, std::size_t length) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool follows = i % length > 0 && int64_t{places[i]} == int64_t{places[i - 1]} + 1;
    if (places[i] != 0 && !follows) return i;
  }
  return std::nullopt;
}

}  // namespace lockstep
