#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/box.h"

namespace lockstep::trainer {

/// What keeps `boxes` from covering a tensor of this shape exactly once, as the end of "... expected"; empty when
/// nothing does. Empty boxes count for nothing. n boxes take O(n log n); they may be cut along at most 8 dimensions.
/// REQUIRES: every box is inside the shape, whose elements are at most 2^62.
std::string_view cover_problem(const std::vector<int64_t>& shape, std::span<const Box> boxes);

}  // namespace lockstep::trainer
