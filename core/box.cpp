#include "core/box.h"

#include "core/range.h"

namespace lockstep {

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
    const auto common = Range{offset[d], size[d]}.overlap({other.offset[d], other.size[d]});
    both.offset[d] = common.start;
    both.size[d] = common.length;
  }
  return both;
}

}  // namespace lockstep
