#include "trainer/checkpoint/box.h"

#include <algorithm>
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

bool Box::inside(const std::vector<int64_t>& shape) const {
  if (offset.size() != shape.size() || size.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (offset[d] < 0 || size[d] < 0 || offset[d] > shape[d] || size[d] > shape[d] - offset[d]) return false;
  return true;
}

int64_t Box::elements() const {
  int64_t count = 1;
  for (const auto length : size) count *= length;
  return count;
}

Box Box::overlap(const Box& other) const {
  Box both = *this;
  for (size_t d = 0; d < size.size(); ++d) {
    const auto end = std::min(offset[d] + size[d], other.offset[d] + other.size[d]);
    both.offset[d] = std::max(offset[d], other.offset[d]);
    both.size[d] = std::max<int64_t>(end - both.offset[d], 0);
  }
  return both;
}

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
