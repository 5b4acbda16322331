// The kernels of our own ops on a GPU beside the CPU's: rows that are whole packs and rows that are not, memory that is
// not contiguous, numbers that are not finite, causal masks that start later, shared heads; and the same bits twice.
// Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include "rng/cuda_fill.h"
#include "runtime/context/gpu.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tests/support/cases/kernel_results.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::numbers;

Tensor there(const Tensor& tensor) { return tensor.to(c10::kCUDA); }
/// What 16-bit numbers are rounded to in between may be seen in float32 results.
bool is_rough = false;

void expect_alike(const Tensor& gpu, const Tensor& cpu, const std::string& what) {
  ASSERT_TRUE(gpu.is_cuda()) << what;
  ASSERT_EQ(gpu.sizes(), cpu.sizes()) << what;
  ASSERT_EQ(gpu.scalar_type(), cpu.scalar_type()) << what;
  for (int64_t d = 0; d < cpu.dim(); ++d)
    EXPECT_TRUE(cpu.numel() == 0 || cpu.size(d) <= 1 || gpu.stride(d) == cpu.stride(d)) << what << " dimension " << d;
  const auto value = gpu.cpu().to(c10::kDouble), expected = cpu.to(c10::kDouble);
  const double tolerance = is_rough ? 0x1p-7 : 2e-5;
  const double largest = cpu.numel() == 0 ? 0 : expected.nan_to_num(0, 0, 0).abs().max().item<double>();
  EXPECT_TRUE(at::allclose(value, expected, tolerance, tolerance * std::max(0.1, largest), /*equal_nan=*/true))
      << what << " of " << c10::toString(cpu.scalar_type()) << ", at most "
      << (value - expected).abs().nan_to_num(0).max().item<double>() << " apart";
}

template <class... T>
void expect_alike(const std::tuple<T...>& gpu, const std::tuple<T...>& cpu, const std::string& what) {
  testing::for_each_result(gpu, cpu, what, [](const auto&... each) { expect_alike(each...); });
}

class GpuKernels : public ::testing::TestWithParam<c10::ScalarType> {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: kernels on a GPU (" << reason << ")";
    require_gpu(0);
    ASSERT_TRUE(cuda::has_kernels());
    is_rough = GetParam() == c10::kBFloat16;
  }
  Tensor make(c10::IntArrayRef sizes) { return numbers(sizes, GetParam(), ++salt_); }
  /// Not contiguous: every second row.
  Tensor sparse(c10::IntArrayRef sizes) {
    auto twice = sizes.vec();
    twice[0] *= 2;
    return make(twice).slice(0, 0, twice[0], 2);
  }

 private:
  int64_t salt_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Dtypes, GpuKernels, ::testing::Values(c10::kFloat, c10::kBFloat16),
                         [](const auto& tested) { return c10::toString(tested.param); });

TEST_P(GpuKernels, NormsAndGates) {
  for (const auto& [rows, size] :
       {std::pair{1, 8}, {5, 24}, {3, 7}, {300, 8}, {2, 264}, {0, 8}, {7, 1024}, {3, 3000}, {2, 4104}, {530, 1032}}) {
    const auto what = std::to_string(rows) + " x " + std::to_string(size);
    const auto x = sparse({rows, size}), weight = make({size}), gradient = sparse({rows, size});
    const auto [y, reciprocal] = kernels::rms_norm(x, weight, 1e-5);
    expect_alike(on_gpu::rms_norm(there(x), there(weight), 1e-5), {y, reciprocal}, "rms_norm " + what);
    expect_alike(on_gpu::rms_norm_backward(there(gradient), there(x), there(reciprocal), there(weight)),
                 kernels::rms_norm_backward(gradient, x, reciprocal, weight), "rms_norm_backward " + what);
    const auto both = sparse({rows, 2, size});
    expect_alike(on_gpu::swiglu(there(both)), kernels::swiglu(both), "swiglu " + what);
    expect_alike(on_gpu::swiglu_backward(there(gradient), there(both)), kernels::swiglu_backward(gradient, both),
                 "swiglu_backward " + what);
  }
}

TEST_P(GpuKernels, CrossEntropy) {
  for (const auto& [rows, size] : {std::pair{1, 8}, {6, 11}, {4, 264}, {0, 8}, {40, 16}}) {
    const auto what = std::to_string(rows) + " x " + std::to_string(size);
    const auto logits = sparse({rows, size}), shift = at::full({rows}, 0.5, logits.options()), slope = make({rows});
    const auto target = at::arange(rows).mul(5).remainder(size + 1).sub(1);  // -1: of another rank's classes
    expect_alike(on_gpu::exponential_sum(there(logits), there(shift)), kernels::exponential_sum(logits, shift),
                 "exponential_sum " + what);
    expect_alike(on_gpu::cross_entropy_backward(there(slope), there(logits), there(shift), there(target)),
                 kernels::cross_entropy_backward(slope, logits, shift, target), "cross_entropy_backward " + what);
    const auto wide_shift = shift.to(c10::kFloat) + 0.001, wide_slope = slope.to(c10::kFloat) * 1.001;
    const auto sums = kernels::exponential_sum(logits, wide_shift);
    EXPECT_EQ(sums.scalar_type(), c10::kFloat);
    expect_alike(on_gpu::exponential_sum(there(logits), there(wide_shift)), sums, "sums in fp32 " + what);
    expect_alike(on_gpu::cross_entropy_backward(there(wide_slope), there(logits), there(wide_shift), there(target)),
                 kernels::cross_entropy_backward(wide_slope, logits, wide_shift, target), "slopes in fp32 " + what);
  }
}

/// On a GPU, one element behind where a pack could begin.
Tensor displaced(const Tensor& tensor) {
  const auto memory = at::empty({tensor.numel() + 1}, tensor.options().device(c10::kCUDA));
  auto result = memory.narrow(0, 1, tensor.numel()).view(tensor.sizes());
  result.copy_(tensor);
  return result;
}

TEST_P(GpuKernels, TakeMisalignedMemory) {
  const auto x = make({6, 16}), weight = make({16}), slope = make({6, 16}), both = make({6, 2, 16});
  const auto [y, reciprocal] = kernels::rms_norm(x, weight, 1e-5);
  expect_alike(on_gpu::rms_norm(displaced(x), displaced(weight), 1e-5), {y, reciprocal}, "rms_norm");
  expect_alike(on_gpu::rms_norm_backward(displaced(slope), displaced(x), displaced(reciprocal), displaced(weight)),
               kernels::rms_norm_backward(slope, x, reciprocal, weight), "rms_norm_backward");
  expect_alike(on_gpu::swiglu(displaced(both)), kernels::swiglu(both), "swiglu");
  expect_alike(on_gpu::swiglu_backward(displaced(slope), displaced(both)), kernels::swiglu_backward(slope, both),
               "swiglu_backward");
  // One operand of several.
  expect_alike(on_gpu::rms_norm(there(x), displaced(weight), 1e-5), {y, reciprocal}, "rms_norm, weight");
  expect_alike(on_gpu::swiglu_backward(displaced(slope), there(both)), kernels::swiglu_backward(slope, both),
               "swiglu_backward, gradient");
  for (int operand = 0; operand < 3; ++operand) {
    const auto given = [&](const Tensor& tensor, int own) {
      return own == operand ? displaced(tensor) : there(tensor);
    };
    expect_alike(on_gpu::rms_norm_backward(given(slope, 0), given(x, 1), there(reciprocal), given(weight, 2)),
                 kernels::rms_norm_backward(slope, x, reciprocal, weight), "rms_norm_backward, one operand");
  }
  const auto shift = make({6}), target = at::arange(6);
  expect_alike(on_gpu::exponential_sum(displaced(x), displaced(shift)), kernels::exponential_sum(x, shift), "sum");
  expect_alike(on_gpu::cross_entropy_backward(displaced(shift), displaced(x), displaced(shift), displaced(target)),
               kernels::cross_entropy_backward(shift, x, shift, target), "cross_entropy_backward");
  const auto heads = make({2, 3, 4, 8}), angles = numbers({4, 4}, c10::kFloat, 1);
  expect_alike(on_gpu::rotate_pairs(displaced(heads), displaced(at::cos(angles)), displaced(at::sin(angles)), false),
               kernels::rotate_pairs(heads, at::cos(angles), at::sin(angles), false), "rotate_pairs");
  const double squares = kernels::sum_of_squares(x).item<double>();
  EXPECT_NEAR(on_gpu::sum_of_squares(displaced(x)).cpu().item<double>(), squares, 1e-12 * squares);
}

TEST_P(GpuKernels, KeepNumbersThatAreNotFinite) {
  auto x = make({4, 16});
  x[0][1] = INFINITY, x[1][3] = NAN, x[2][5] = -INFINITY, x[3][0] = NAN;
  const auto weight = make({16}), slope = make({4, 16}), both = x.reshape({2, 2, 16}), half = make({2, 16});
  const auto [y, reciprocal] = kernels::rms_norm(x, weight, 1e-5);
  expect_alike(on_gpu::rms_norm(there(x), there(weight), 1e-5), {y, reciprocal}, "rms_norm");
  expect_alike(on_gpu::rms_norm_backward(there(slope), there(x), there(reciprocal), there(weight)),
               kernels::rms_norm_backward(slope, x, reciprocal, weight), "rms_norm_backward");
  expect_alike(on_gpu::swiglu(there(both)), kernels::swiglu(both), "swiglu");
  expect_alike(on_gpu::swiglu_backward(there(half), there(both)), kernels::swiglu_backward(half, both),
               "swiglu_backward");
  auto shift = make({4});
  const auto target = at::arange(4);
  expect_alike(on_gpu::exponential_sum(there(x), there(shift)), kernels::exponential_sum(x, shift), "exponential_sum");
  shift[0] = INFINITY;
  expect_alike(on_gpu::cross_entropy_backward(there(shift), there(slope), there(make({4})), there(target)).isnan(),
               there(kernels::cross_entropy_backward(shift, slope, make({4}), target)).isnan().cpu(), "where NaN is");
  EXPECT_TRUE(std::isnan(on_gpu::sum_of_squares(there(x)).cpu().item<double>()));
}

/// Parts of wider rows, and memory that begins between packs.
TEST_P(GpuKernels, AttentionOfMisalignedHeads) {
  const auto wide = make({2, 3, 5, 20}), query = wide.narrow(3, 0, 8), key = wide.narrow(3, 8, 8),
             value = wide.narrow(3, 11, 8);
  const auto on_device = there(wide);
  const auto [output, log_sum] = kernels::attention(query, key, value, true, 0.4, 0);
  expect_alike(
      on_gpu::attention(on_device.narrow(3, 0, 8), on_device.narrow(3, 8, 8), on_device.narrow(3, 11, 8), true, 0.4, 0),
      {output, log_sum}, "attention");
  expect_alike(on_gpu::attention_backward(displaced(output), displaced(query), displaced(key), displaced(value),
                                          displaced(output), displaced(log_sum), true, 0.4, 0),
               kernels::attention_backward(output, query, key, value, output, log_sum, true, 0.4, 0),
               "attention_backward");
}

/// Rounded once, to nearest even: what float32 gives of the same numbers, ties and all.
TEST(GpuRounding, IsOnce) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    GTEST_SKIP() << "NOT CHECKED: kernels on a GPU (" << reason << ")";
  require_gpu(0);
  const auto both = there(numbers({64, 2, 48}, c10::kBFloat16, 1)), slope = there(numbers({64, 48}, c10::kBFloat16, 2));
  const auto wide = both.to(c10::kFloat), wide_slope = slope.to(c10::kFloat);
  const auto expect_rounded = [](const Tensor& narrow, const Tensor& exact, const char* what) {
    EXPECT_TRUE(at::equal(narrow.cpu(), exact.cpu().to(c10::kBFloat16))) << what;
  };
  expect_rounded(on_gpu::swiglu(both), on_gpu::swiglu(wide), "swiglu");
  expect_rounded(on_gpu::swiglu_backward(slope, both), on_gpu::swiglu_backward(wide_slope, wide), "swiglu_backward");
  const auto angles = numbers({2, 24}, c10::kFloat, 3), x = both.unsqueeze(0), wide_x = wide.unsqueeze(0);
  const auto c = there(at::cos(angles)), s = there(at::sin(angles));
  expect_rounded(on_gpu::rotate_pairs(x, c, s, false), on_gpu::rotate_pairs(wide_x, c, s, false), "rotate_pairs");
  // Halfway between two: 1 + 2^-8 times an odd number of the last place.
  const auto halfway = there(at::full({2, 24}, 1 + 0x1p-8)), zero = at::zeros_like(halfway);
  const auto whole = there(at::arange(96).remainder(9).sub(4).reshape({1, 1, 2, 48}).to(c10::kFloat));
  expect_rounded(on_gpu::rotate_pairs(whole.to(c10::kBFloat16), halfway, zero, false),
                 on_gpu::rotate_pairs(whole, halfway, zero, false), "ties");
  const auto none = there(at::full({64}, 7)), shift = there(at::zeros({64}, c10::kBFloat16));
  const auto gradient = slope.select(1, 0).contiguous();
  expect_rounded(on_gpu::cross_entropy_backward(gradient, slope, shift, none),
                 on_gpu::cross_entropy_backward(gradient.to(c10::kFloat), wide_slope, shift.to(c10::kFloat), none),
                 "cross_entropy_backward");
}

TEST_P(GpuKernels, Rotations) {
  for (const int64_t size : {2, 6, 8, 16})
    for (const bool back : {false, true}) {
      const auto packed = make({2, 5, 4, 3 * size}).narrow(3, size, size), x = packed.transpose(1, 2);
      const auto angles = numbers({5, size / 2}, c10::kFloat, 1), c = at::cos(angles), s = at::sin(angles);
      const auto expected = kernels::rotate_pairs(x, c, s, back);
      // As part of wider rows, and with its own memory in another order.
      const auto wide = there(make({2, 5, 4, 3 * size})), part = wide.narrow(3, size, size);
      part.copy_(packed);
      const auto odd = there(make({2, 5, 4, size + 2})).narrow(3, 0, size);
      odd.copy_(packed);
      for (const auto& in : {part.transpose(1, 2), odd.transpose(1, 2), there(x.contiguous())})
        expect_alike(on_gpu::rotate_pairs(in, there(c), there(s), back), expected,
                     "rotate_pairs of " + std::to_string(size));
    }
}

TEST_P(GpuKernels, Attention) {
  struct Shape {
    int64_t batch, heads, group, queries, keys, first_row, size;
    bool causal;
  };
  // The last of each kind: rows that see more keys than there are, a size that is no multiple of 8.
  const Shape shapes[] = {{2, 3, 1, 9, 9, 0, 8, true},   {1, 2, 2, 5, 5, 0, 16, false}, {2, 1, 3, 4, 9, 5, 8, true},
                          {1, 2, 1, 1, 1, 0, 8, true},   {0, 2, 1, 3, 3, 0, 8, true},   {1, 1, 2, 3, 8, 2, 16, true},
                          {1, 2, 1, 70, 70, 0, 8, true}, {1, 1, 1, 1, 5, 2, 8, true},   {1, 2, 1, 5, 3, 0, 8, true},
                          {1, 1, 2, 4, 4, 0, 6, true}};
  for (const auto& s : shapes) {
    const auto what = fmt::format("of {} rows from {} on, {} keys, size {}", s.queries, s.first_row, s.keys, s.size);
    const auto query = make({s.batch, s.heads * s.group, s.queries, s.size}), gradient = make(query.sizes());
    const auto key = make({s.batch, s.keys, s.heads, s.size}).transpose(1, 2);
    const auto value = make({s.batch, s.heads, s.keys, s.size});
    const auto [output, log_sum] = kernels::attention(query, key, value, s.causal, 0.4, s.first_row);
    expect_alike(on_gpu::attention(there(query), there(key), there(value), s.causal, 0.4, s.first_row),
                 {output, log_sum}, "attention " + what);
    expect_alike(on_gpu::attention_backward(there(gradient), there(query), there(key), there(value), there(output),
                                            there(log_sum), s.causal, 0.4, s.first_row),
                 kernels::attention_backward(gradient, query, key, value, output, log_sum, s.causal, 0.4, s.first_row),
                 "attention_backward " + what);
  }
}

TEST_P(GpuKernels, RepeatTheirBits) {
  const auto query = there(make({2, 8, 200, 16})), key = there(make({2, 2, 200, 16})), value = there(make(key.sizes()));
  const auto x = there(make({500, 264})), weight = there(make({264})), slope = there(make({500, 264}));
  const auto all = [&] {
    const auto [output, log_sum] = on_gpu::attention(query, key, value, true, 0.3, 0);
    const auto [dq, dk, dv] = on_gpu::attention_backward(output, query, key, value, output, log_sum, true, 0.3, 0);
    const auto [y, reciprocal] = on_gpu::rms_norm(x, weight, 1e-5);
    const auto [dx, dw] = on_gpu::rms_norm_backward(slope, x, reciprocal, weight);
    const auto both = x.view({250, 2, 264}), half = slope.narrow(0, 0, 250), row = x.select(1, 0).contiguous();
    return std::vector<Tensor>{output,
                               dq,
                               dk,
                               dv,
                               y,
                               dx,
                               dw,
                               on_gpu::sum_of_squares(x),
                               on_gpu::swiglu(both),
                               on_gpu::swiglu_backward(half, both),
                               on_gpu::exponential_sum(x, row)};
  };
  const auto first = all(), second = all();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i].cpu(), second[i].cpu())) << "result " << i;
}

/// Of more than 4,096 parts, too, above which there are none.
TEST_P(GpuKernels, Squares) {
  for (const int64_t count : {1, 7, 4096, 100003, 4'300'001}) {
    const auto x = make({count});
    const double expected = kernels::sum_of_squares(x).item<double>();
    EXPECT_NEAR(on_gpu::sum_of_squares(there(x)).cpu().item<double>(), expected, 1e-12 * expected) << count;
  }
}

using GpuAdamw = GpuKernels;

INSTANTIATE_TEST_SUITE_P(Gradients, GpuAdamw, ::testing::Values(c10::kFloat, c10::kBFloat16),
                         [](const auto& tested) { return c10::toString(tested.param); });

TEST_P(GpuAdamw, WritesWhatTheLoopsWrite) {
  for (const int64_t count : {35, 48, 64, 5001, 8192}) {
    const auto gradient = make({count});
    std::vector<Tensor> cpu, gpu;
    for (int64_t i = 0; i < 3; ++i) {
      cpu.push_back(numbers({count}, c10::kFloat, i).abs());
      gpu.push_back(count == 64 && i == 1 ? displaced(cpu.back()) : there(cpu.back()));
    }
    for (int step = 1; step <= 3; ++step) {
      const double correction1 = 1 - std::pow(0.9, step), correction2 = 1 - std::pow(0.95, step);
      const auto run = [&](auto* adamw, const std::vector<Tensor>& state, const Tensor& by) {
        adamw(state[0], by, state[1], state[2], 1e-2, 0.9, 0.95, 1e-8, 0.1, correction1, correction2, 0.5);
      };
      run(on_gpu::adamw, gpu, there(gradient));
      run(kernels::adamw, cpu, gradient);
    }
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(at::equal(gpu[i].cpu(), cpu[i])) << "one sequence of IEEE operations: tensor " << i;
  }
}

}  // namespace
}  // namespace lockstep
