#include "runtime/kernels/softmax.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include "runtime/kernels/parallel.h"
#include "runtime/kernels/softmax_loops.h"
#include "runtime/kernels/widened.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

constexpr int64_t kGrain = 1 << 14;  ///< elements that are not worth another thread

/// The dimension as rows.
Tensor rows_along(int64_t dim, const Tensor& tensor) { return widened(tensor.movedim(dim, -1)); }

/// run(rows, number of the first element) for blocks of the rows.
template <class Run>
void by_rows(const Tensor& like, const Run& run) {
  const int64_t width = like.size(-1);
  if (like.numel() == 0) return;
  parallel_for(0, like.numel() / width, std::max<int64_t>(kGrain / width, 1), [&](int64_t begin, int64_t end) {
    run(loops::Rows{end - begin, width}, begin * width);
  });
}

/// What was computed in rows, as `like` is.
Tensor as_was(const Tensor& rows, int64_t dim, const Tensor& like) {
  return rows.movedim(-1, dim).contiguous().to(like.scalar_type());
}

template <class Loop>
Tensor map(const Tensor& x, int64_t dim, const Loop& loop) {
  const auto rows = rows_along(dim, x), out = at::empty_like(rows);
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "softmax", [&] {
    const auto* from = rows.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    by_rows(out, [=](loops::Rows part, int64_t first) { loop(part, from + first, to + first); });
  });
  return as_was(out, dim, x);
}

template <class Loop>
Tensor map_pairs(const Tensor& gradient, const Tensor& result, int64_t dim, const Loop& loop) {
  const auto slopes = rows_along(dim, gradient), rows = rows_along(dim, result.to(gradient.scalar_type()));
  const auto out = at::empty_like(slopes);
  AT_DISPATCH_FLOATING_TYPES(slopes.scalar_type(), "softmax_backward", [&] {
    const auto *g = slopes.const_data_ptr<scalar_t>(), *y = rows.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    by_rows(out, [=](loops::Rows part, int64_t first) { loop(part, g + first, y + first, to + first); });
  });
  return as_was(out, dim, gradient);
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  return map(x, dim, [](auto rows, const auto* from, auto* to) { loops::softmax(rows, from, to); });
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  return map(x, dim, [](auto rows, const auto* from, auto* to) { loops::log_softmax(rows, from, to); });
}

Tensor softmax_backward(const Tensor& g, const Tensor& y, int64_t dim) {
  return map_pairs(g, y, dim, [](auto rows, const auto* slopes, const auto* from, auto* to) {
    loops::softmax_backward(rows, slopes, from, to);
  });
}

Tensor log_softmax_backward(const Tensor& g, const Tensor& y, int64_t dim) {
  return map_pairs(g, y, dim, [](auto rows, const auto* slopes, const auto* from, auto* to) {
    loops::log_softmax_backward(rows, slopes, from, to);
  });
}

}  // namespace lockstep::kernels
