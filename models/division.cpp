#include "models/division.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep::models {

Division::Division(std::vector<int64_t> sizes, std::vector<Part> parts)
    : sizes_(std::move(sizes)), parts_(std::move(parts)) {
  for (const auto& part : parts_) {
    starts_.push_back(group_rows_);
    group_rows_ += part.rows;
  }
  const int64_t rows = sizes_.empty() ? 1 : sizes_[0];
  LOCKSTEP_CHECK(group_rows_ > 0 && rows % group_rows_ == 0, "{} rows in groups of {}", rows, group_rows_);
}

std::vector<int64_t> Division::sizes_of(size_t part) const {
  auto sizes = sizes_;
  if (!sizes.empty()) sizes[0] = sizes[0] / group_rows_ * parts_[part].rows;
  return sizes;
}

std::vector<PartRows> Division::rows_of(size_t part, int64_t first, int64_t count) const {
  std::vector<PartRows> runs;
  const int64_t rows = parts_[part].rows;
  for (int64_t group = first / group_rows_; group * group_rows_ < first + count; ++group) {
    const int64_t start = group * group_rows_ + starts_[part];
    const int64_t begin = std::max(start, first), end = std::min(start + rows, first + count);
    if (begin < end) runs.push_back({begin, group * rows + begin - start, end - begin});
  }
  return runs;
}

}  // namespace lockstep::models
