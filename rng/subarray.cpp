#include "rng/subarray.h"

#include "core/error.h"

namespace lockstep::rng {

Subarray Subarray::whole(const std::vector<int64_t>& sizes, uint64_t base) {
  return of(sizes, Box::whole(sizes), base);
}

Subarray Subarray::of(const std::vector<int64_t>& global_sizes, const Box& box, uint64_t base) {
  const auto &starts = box.offset, &lengths = box.size;
  if (starts.size() != global_sizes.size() || lengths.size() != global_sizes.size()) {
    fail<BadInput>("subarray of {} dimensions with {} starts and {} lengths", global_sizes.size(), starts.size(),
                   lengths.size());
  }
  Subarray subarray{.dimensions = std::vector<SubarrayDimension>(global_sizes.size()), .base = base};
  int64_t stride = 1;
  for (std::size_t d = global_sizes.size(); d-- > 0;) {
    subarray.dimensions[d] = {global_sizes[d], starts[d], lengths[d], stride};
    if (lengths[d] > 1 && __builtin_mul_overflow(stride, lengths[d], &stride)) {
      fail<BadInput>("subarray: the box has more than 2^63 elements");
    }
  }
  return subarray;
}

int64_t Subarray::elements() const {
  int64_t count = 1;
  for (const auto& d : dimensions) count *= d.length;
  return count;
}

void Subarray::check() const {
  uint64_t total = 1;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const auto& d = dimensions[i];
    if (d.global_size < 0 || d.start < 0 || d.length < 0 || d.start > d.global_size - d.length) {
      fail<BadInput>("subarray: dimension {} has start {} and length {} in a size of {}", i, d.start, d.length,
                     d.global_size);
    }
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(d.global_size), &total)) total = ~uint64_t{0};
  }
  constexpr uint64_t kMost = uint64_t{1} << 63;
  if (total > kMost || base > kMost - total) {
    fail<BadInput>("subarray: {} elements from index {} on go past 2^63", total, base);
  }
}

}  // namespace lockstep::rng
