#include "core/batch_rows.h"

#include <algorithm>

namespace lockstep {

BatchRows BatchRows::seen_by(int64_t size) const {
  if (count == 0) return *this;
  if (size % count != 0) return {};
  const int64_t entries = size / count;
  return {first * entries, size, run * entries, stride * entries};
}

std::vector<BatchRows::Run> BatchRows::runs(Range rows) const {
  std::vector<Run> result;
  const int64_t end = rows.start + rows.length;
  for (int64_t row = rows.start; row < end;) {
    const int64_t index = run > 0 ? row / run : 0;
    const int64_t stop = run > 0 ? std::min((index + 1) * run, end) : end;
    result.push_back({{row, stop - row}, first + index * (stride - run)});
    row = stop;
  }
  return result;
}

}  // namespace lockstep
