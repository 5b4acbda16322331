#include "trainer/weights/hugging_face/rotary_rows.h"

#include <vector>

namespace lockstep::trainer {
namespace {

/// Rows [heads * outer * inner, ...] with the two parts of a head's rows exchanged.
at::Tensor exchanged(const at::Tensor& rows, int64_t outer, int64_t inner) {
  auto sizes = rows.sizes().vec();
  sizes[0] = inner;
  sizes.insert(sizes.begin(), {-1, outer});
  return rows.reshape(sizes).transpose(1, 2).reshape(rows.sizes());
}

}  // namespace

at::Tensor pairs_together(const ReadRows& apart, int64_t head_size, int64_t first, int64_t count) {
  if (count == 0) return apart(first, 0);
  const int64_t begin = first / head_size * head_size, end = (first + count + head_size - 1) / head_size * head_size;
  return exchanged(apart(begin, end - begin), 2, head_size / 2).narrow(0, first - begin, count);
}

at::Tensor pairs_apart(const at::Tensor& together, int64_t head_size) { return exchanged(together, head_size / 2, 2); }

}  // namespace lockstep::trainer
