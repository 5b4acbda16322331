#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Times of a step as people read them. All are in nanoseconds since the step began.
namespace lockstep::replay {

struct TimeWindow {
  uint64_t begin = 0, end = 0;
  uint64_t length() const { return end - begin; }
};

/// How long, in three digits: "412 ns", "3.41 us", "12.5 ms", "1.20 s", "0".
std::string time_text(uint64_t nanoseconds);

/// The smallest of 1, 2, 5, 10, 20, 50 ... ns that divides `length` into at most `most` whole parts. REQUIRES: most >
/// 0.
uint64_t round_part(uint64_t length, size_t most);

/// Of a round_part(): "20 ms".
std::string part_text(uint64_t part);

struct Tick {
  uint64_t at = 0;
  std::string label;  ///< "120 ms", "0.5 s", "357,655 us": one unit for all of an axis, by the window's length
};

/// The multiples of round_part() in the window, both ends included: `most` + 1 at most.
std::vector<Tick> ticks_of(TimeWindow window, size_t most);

}  // namespace lockstep::replay
