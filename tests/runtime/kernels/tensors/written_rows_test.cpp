// Rows that are written a block of memory at a time are those of one loop over all of them.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "runtime/kernels/rows/row_loops.h"
#include "runtime/kernels/rows/softmax_loops.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/softmax.h"

namespace lockstep::testing {
namespace {

/// Two blocks of 1 MiB and a rest; and rows that are longer than a block.
constexpr kernels::loops::Rows kSizes[] = {{301, 1999}, {3, 300001}};

template <class Loop>
void expect_rows(const at::Tensor& ours, const Loop& loop) {
  const auto whole = at::full_like(ours, 7);
  loop(kernels::loops::Rows{ours.size(0), ours.size(1)}, whole.mutable_data_ptr<float>());
  EXPECT_TRUE(at::equal(ours, whole));
}

TEST(WrittenRows, OfSoftmaxesAreThoseOfOneLoop) {
  for (const auto& size : kSizes) {
    const auto x = at::randn({size.count, size.width}), g = at::randn({size.count, size.width});
    const auto *from = x.const_data_ptr<float>(), *slopes = g.const_data_ptr<float>();
    expect_rows(kernels::softmax(x, 1), [=](auto rows, float* out) { kernels::loops::softmax(rows, from, out); });
    expect_rows(kernels::log_softmax(x, 1),
                [=](auto rows, float* out) { kernels::loops::log_softmax(rows, from, out); });
    expect_rows(kernels::softmax_backward(g, x, 1),
                [=](auto rows, float* out) { kernels::loops::softmax_backward(rows, slopes, from, out); });
    expect_rows(kernels::log_softmax_backward(g, x, 1),
                [=](auto rows, float* out) { kernels::loops::log_softmax_backward(rows, slopes, from, out); });
  }
}

TEST(WrittenRows, OfCrossEntropyAreThoseOfOneLoop) {
  for (const auto& size : kSizes) {
    const auto x = at::randn({size.count, size.width}), g = at::randn({size.count}), log_sum = at::randn({size.count});
    const auto targets = at::randint(size.width, {size.count}, at::kLong);
    expect_rows(kernels::cross_entropy_backward(g, x, log_sum, targets), [&](auto rows, float* out) {
      kernels::loops::cross_entropy_backward(rows, g.const_data_ptr<float>(), x.const_data_ptr<float>(),
                                             log_sum.const_data_ptr<float>(), targets.const_data_ptr<int64_t>(), out);
    });
  }
}

}  // namespace
}  // namespace lockstep::testing
