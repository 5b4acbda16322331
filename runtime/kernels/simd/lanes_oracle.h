#pragma once
#include <cstdint>

/// What lanes.h computes, one number after the other.
namespace lockstep::kernels {

/// The sum of the elements [start, end), of which the first is lane 0's: add(lane, element) continues a lane.
template <class T, class Add>
T lanes_oracle(int64_t start, int64_t end, const Add& add) {
  T lanes[16] = {};
  for (int64_t i = start; i < end; ++i) lanes[(i - start) % 16] = add(lanes[(i - start) % 16], i);
  for (int apart = 8; apart > 0; apart /= 2)
    for (int lane = 0; lane < apart; ++lane) lanes[lane] += lanes[lane + apart];
  return lanes[0];
}

}  // namespace lockstep::kernels
