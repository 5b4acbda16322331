// Canonical norms, gates, losses, softmax, rotations and functions on a GPU beside the CPU's, in all bits.
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/elementwise.h"
#include "runtime/kernels/tensors/softmax.h"
#include "tests/trainer/gpu/canonical_results.h"

namespace lockstep {
namespace {

using at::Tensor;
using kernels::loops::Function;
using kernels::loops::Gradient;
using testing::expect_cpu_bits;

using CanonicalRows = testing::CanonicalKernels;
INSTANTIATE_TEST_SUITE_P(Gpu, CanonicalRows, ::testing::Values(c10::kFloat, c10::kBFloat16), testing::dtype_name);

constexpr std::pair<int64_t, int64_t> kSizes[] = {{0, 8}, {1, 1}, {3, 15}, {5, 16}, {7, 33}, {2, 700}, {300, 40}};

TEST_P(CanonicalRows, Norms) {
  const auto norm = [](const Tensor& x, const Tensor& weight) { return kernels::rms_norm(x, weight, 1e-5); };
  const auto gradient = [](const Tensor& g, const Tensor& x, const Tensor& r, const Tensor& weight) {
    return kernels::rms_norm_input_gradient(g, x, r, weight);
  };
  for (const auto& [rows, width] : kSizes) {
    const auto x = sparse({rows, width}), weight = make({width});
    expect_cpu_bits("rms_norm", norm, x, weight);
    expect_cpu_bits("its gradient", gradient, sparse({rows, width}), x, std::get<1>(kernels::rms_norm(x, weight, 1e-5)),
                    weight);
  }
  expect_cpu_bits("special numbers", norm, with_special_numbers(make({4, 20})), make({20}));
}

TEST_P(CanonicalRows, Gates) {
  const auto gate = [](const Tensor& both) { return kernels::swiglu(both); };
  const auto gradient = [](const Tensor& g, const Tensor& both) { return kernels::swiglu_backward(g, both); };
  for (const auto& [rows, width] : kSizes) {
    const auto both = sparse({rows, 2, width}).mul(5);
    expect_cpu_bits("swiglu", gate, both);
    expect_cpu_bits("swiglu_backward", gradient, make({rows, width}), both);
  }
  expect_cpu_bits("special numbers", gate, with_special_numbers(make({4, 2, 20})));
}

TEST_P(CanonicalRows, CrossEntropy) {
  const auto gradient = [](const Tensor& g, const Tensor& logits, const Tensor& log_sum, const Tensor& target) {
    return kernels::cross_entropy_backward(g, logits, log_sum, target);
  };
  for (const auto& [rows, width] : kSizes)
    expect_cpu_bits("cross_entropy_backward", gradient, make({rows}, c10::kFloat), make({rows, width}),
                    make({rows}, c10::kFloat).add(3), at::arange(rows).remainder(width + 1).sub(1));
}

TEST_P(CanonicalRows, Softmax) {
  for (const auto& [rows, width] : kSizes)
    for (const int64_t dim : {0, 1}) {
      const auto x = make({rows, width}).mul(10), g = make({rows, width}), y = make({rows, width});
      if (x.size(dim) == 0) continue;
      expect_cpu_bits(
          "softmax", [&](const Tensor& each) { return kernels::softmax(each, dim); }, x);
      expect_cpu_bits(
          "log_softmax", [&](const Tensor& each) { return kernels::log_softmax(each, dim); }, x);
      const auto back = [&](const Tensor& a, const Tensor& b) { return kernels::softmax_backward(a, b, dim); };
      const auto log_back = [&](const Tensor& a, const Tensor& b) { return kernels::log_softmax_backward(a, b, dim); };
      expect_cpu_bits("softmax_backward", back, g, y);
      expect_cpu_bits("log_softmax_backward", log_back, g, y);
    }
  const auto special = with_special_numbers(make({5, 20}));
  expect_cpu_bits(
      "special numbers", [](const Tensor& x) { return kernels::softmax(x, 1); }, special);
  for (const int64_t width : {1, 20})
    expect_cpu_bits(
        "zeros", [](const Tensor& x) { return kernels::log_softmax(x, 1); },
        at::full({2, width}, -0.0, special.options()));
}

TEST_P(CanonicalRows, Functions) {
  const auto x = at::cat({make({3000}).mul(3), with_special_numbers(make({100}).mul(40))});
  for (int i = 0; i <= static_cast<int>(Function::kGeluByTanh); ++i)
    expect_cpu_bits(
        fmt::format("function {}", i),
        [&](const Tensor& each) { return kernels::apply(static_cast<Function>(i), each); }, x);
  for (int i = 0; i <= static_cast<int>(Gradient::kGeluByTanh); ++i) {
    const auto gradient = [&](const Tensor& g, const Tensor& each) {
      return kernels::apply(static_cast<Gradient>(i), g, each);
    };
    expect_cpu_bits(fmt::format("gradient {}", i), gradient, make({3100}), x);
  }
}

TEST_P(CanonicalRows, Rotations) {
  for (const int64_t size : {2, 6, 16})
    for (const bool back : {false, true}) {
      const auto rotate = [&](const Tensor& x, const Tensor& c, const Tensor& s) {
        return kernels::rotate_pairs(x, c, s, back);
      };
      const auto angles = make({5, size / 2}, c10::kFloat);
      expect_cpu_bits("rotate_pairs", rotate, make({2, 5, 4, 3 * size}).narrow(3, size, size).transpose(1, 2),
                      at::cos(angles), at::sin(angles));
    }
}

TEST_P(CanonicalRows, Adamw) {
  const auto step = [](const Tensor& gradient, const Tensor& p, const Tensor& m, const Tensor& v) {
    const auto parameter = p.clone(), mean = m.clone(), square = v.clone();
    kernels::adamw(parameter, gradient, mean, square, 1e-2, 0.9, 0.95, 1e-8, 0.1, 0.19, 0.0975, 0.5);
    return std::tuple(parameter, mean, square);
  };
  for (const int64_t count : {0, 35, 5001}) {
    const auto numbers = [&] { return make({count}, c10::kFloat); };
    expect_cpu_bits("adamw", step, make({count}), numbers(), numbers(), numbers().abs());
  }
}

}  // namespace
}  // namespace lockstep
