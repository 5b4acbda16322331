// The kernels composed of LibTorch's ops, which a GPU runs, beside the CPU's own: the same values in float64 to 1e-12,
// the same sizes, dtypes and strides in every dtype; causal masks that start later, shared heads, empty and odd sizes.
#include <gtest/gtest.h>

#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tests/support/cases/kernel_results.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::numbers;

double tolerance(c10::ScalarType dtype) {
  if (dtype == c10::kDouble) return 1e-12;
  return dtype == c10::kFloat ? 2e-5 : 0.05;
}

void expect_alike(const Tensor& composed, const Tensor& own, const std::string& what) {
  ASSERT_EQ(composed.sizes(), own.sizes()) << what;
  ASSERT_EQ(composed.scalar_type(), own.scalar_type()) << what;
  if (own.numel() == 0) return;
  for (int64_t d = 0; d < own.dim(); ++d)
    EXPECT_TRUE(own.size(d) <= 1 || composed.stride(d) == own.stride(d)) << what << " in dimension " << d;
  const auto expected = own.to(c10::kDouble);
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  const double difference = (composed.to(c10::kDouble) - expected).abs().max().item<double>() / scale;
  EXPECT_LE(difference, tolerance(own.scalar_type())) << what << " of " << c10::toString(own.scalar_type());
}

template <class... T>
void expect_alike(const std::tuple<T...>& composed, const std::tuple<T...>& own, const std::string& what) {
  testing::for_each_result(composed, own, what, [](const auto&... each) { expect_alike(each...); });
}

class ComposedKernels : public ::testing::TestWithParam<c10::ScalarType> {
 protected:
  Tensor make(c10::IntArrayRef sizes) { return numbers(sizes, GetParam(), ++salt_); }

 private:
  int64_t salt_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Dtypes, ComposedKernels, ::testing::Values(c10::kDouble, c10::kFloat, c10::kBFloat16),
                         [](const auto& tested) { return c10::toString(tested.param); });

TEST_P(ComposedKernels, NormsAndGates) {
  for (const int64_t rows : {0, 1, 5}) {
    const auto x = make({rows, 3, 14}), weight = make({14}), gradient = make({rows, 3, 14});
    const auto [y, reciprocal] = kernels::rms_norm(x, weight, 1e-5);
    expect_alike(composed::rms_norm(x, weight, 1e-5), {y, reciprocal}, "rms_norm");
    expect_alike(composed::rms_norm_backward(gradient, x, reciprocal, weight),
                 kernels::rms_norm_backward(gradient, x, reciprocal, weight), "rms_norm_backward");
    const auto both = make({rows, 2, 7}), slope = make({rows, 7});
    expect_alike(composed::swiglu(both), kernels::swiglu(both), "swiglu");
    expect_alike(composed::swiglu_backward(slope, both), kernels::swiglu_backward(slope, both), "swiglu_backward");
    const auto input = make({rows, 3, 5});
    expect_alike(composed::weight_gradient(gradient, input), kernels::weight_gradient(gradient, input), "weights");
  }
}

TEST_P(ComposedKernels, CrossEntropy) {
  for (const int64_t rows : {0, 1, 6}) {
    const auto logits = make({rows, 11}), shift = at::full({rows}, 0.5, logits.options()), slope = make({rows});
    const auto target = at::arange(rows).mul(5).remainder(12).sub(1);  // -1: of another rank's classes
    expect_alike(composed::exponential_sum(logits, shift), kernels::exponential_sum(logits, shift), "sum");
    expect_alike(composed::pick_class(logits, target), kernels::pick_class(logits, target), "pick_class");
    expect_alike(composed::cross_entropy_backward(slope, logits, shift, target),
                 kernels::cross_entropy_backward(slope, logits, shift, target), "cross_entropy_backward");
  }
}

TEST_P(ComposedKernels, Attention) {
  struct Shape {
    int64_t batch, heads, group, queries, keys, first_row;
    bool causal;
  };
  const Shape shapes[] = {{2, 3, 1, 9, 9, 0, true}, {1, 2, 2, 5, 5, 0, false}, {2, 1, 3, 4, 9, 5, true},
                          {1, 2, 1, 1, 1, 0, true}, {0, 2, 1, 3, 3, 0, true},  {1, 1, 2, 3, 8, 2, true}};
  for (const auto& s : shapes) {
    const auto query = make({s.batch, s.heads * s.group, s.queries, 6}), key = make({s.batch, s.heads, s.keys, 6});
    const auto value = make({s.batch, s.heads, s.keys, 6}), gradient = make(query.sizes());
    const auto [output, log_sum] = kernels::attention(query, key, value, s.causal, 0.4, s.first_row);
    expect_alike(composed::attention(query, key, value, s.causal, 0.4, s.first_row), {output, log_sum}, "attention");
    expect_alike(composed::attention_backward(gradient, query, key, value, output, log_sum, s.causal, 0.4, s.first_row),
                 kernels::attention_backward(gradient, query, key, value, output, log_sum, s.causal, 0.4, s.first_row),
                 "attention_backward");
  }
}

TEST_P(ComposedKernels, RotationsAndSquares) {
  for (const int64_t batch : {0, 2}) {
    const auto x = make({batch, 3, 5, 8}), angles = numbers({5, 4}, c10::kFloat, 1);
    for (const bool back : {false, true})
      expect_alike(composed::rotate_pairs(x, at::cos(angles), at::sin(angles), back),
                   kernels::rotate_pairs(x, at::cos(angles), at::sin(angles), back), "rotate_pairs");
    expect_alike(composed::sum_of_squares(x), kernels::sum_of_squares(x), "sum_of_squares");
  }
}

TEST(ComposedAdamw, WritesWhatTheLoopsWrite) {
  for (const auto dtype : {c10::kDouble, c10::kFloat}) {
    const auto gradient = numbers({5, 7}, dtype, 3);
    std::vector<Tensor> composed, own;
    for (int64_t i = 0; i < 3; ++i) {
      own.push_back(numbers({5, 7}, dtype, i).abs());
      composed.push_back(own.back().clone());
    }
    for (int step = 1; step <= 3; ++step) {
      const double correction1 = 1 - std::pow(0.9, step), correction2 = 1 - std::pow(0.95, step);
      composed::adamw(composed[0], gradient, composed[1], composed[2], 1e-2, 0.9, 0.95, 1e-8, 0.1, correction1,
                      correction2, 0.5);
      kernels::adamw(own[0], gradient, own[1], own[2], 1e-2, 0.9, 0.95, 1e-8, 0.1, correction1, correction2, 0.5);
    }
    for (size_t i = 0; i < 3; ++i) expect_alike(composed[i], own[i], "adamw");
  }
}

}  // namespace
}  // namespace lockstep
