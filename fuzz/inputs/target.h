#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// What every target of libFuzzer defines. Bad input is fine; a wrong answer aborts.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lockstep::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The path of a file in memory that holds these bytes, until the next call.
std::string file_of(const uint8_t* data, size_t size);

/// Prints and aborts, so that libFuzzer keeps the input.
void require(bool holds, std::string_view what);

/// The same of a check that must not throw either: an exception ends the program.
template <class Check>
void require_that(std::string_view what, const Check& check) noexcept {
  require(check(), what);
}

}  // namespace lockstep::fuzz
