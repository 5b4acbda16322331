#include "trainer/checkpoint/copy_overlap.h"

#include <cstring>

namespace lockstep::trainer {
namespace {

/// Position of `coordinate` (relative to the tensor) in the row-major elements of `box`.
int64_t position(const Box& box, const std::vector<int64_t>& coordinate) {
  int64_t at = 0;
  for (size_t d = 0; d < coordinate.size(); ++d) at = at * box.size[d] + coordinate[d] - box.offset[d];
  return at;
}

/// Moves `coordinate` to the next row of `box`; false after the last one.
bool next_row(const Box& box, std::vector<int64_t>& coordinate) {
  for (auto d = static_cast<int64_t>(coordinate.size()) - 2; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    if (++coordinate[i] < box.offset[i] + box.size[i]) return true;
    coordinate[i] = box.offset[i];
  }
  return false;
}

}  // namespace

void copy_overlap(const Box& from, std::span<const std::byte> source, const Box& to, std::span<std::byte> target,
                  int64_t element_size) {
  const auto both = from.overlap(to);
  if (both.elements() == 0) return;
  const auto row_bytes = static_cast<size_t>(element_size * (both.size.empty() ? 1 : both.size.back()));
  auto row = both.offset;
  do {
    std::memcpy(target.data() + element_size * position(to, row), source.data() + element_size * position(from, row),
                row_bytes);
  } while (next_row(both, row));
}

}  // namespace lockstep::trainer
