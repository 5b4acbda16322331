// Kernels give the same bits on any number of threads: on sizes that are shared between them, which the tests of
// single kernels are too small for.
#include <gtest/gtest.h>

#include <functional>

#include "fuzz/cases/tensors.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/canonical_products.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/elementwise.h"
#include "runtime/kernels/tensors/softmax.h"
#include "tests/support/threads.h"

namespace lockstep::kernels {
namespace {

using Tensors = std::vector<Tensor>;

constexpr int64_t kBatch = 5, kLength = 67, kHeads = 4, kSize = 64, kRows = kBatch * kLength, kWidth = 515;

Tensor rows(int64_t width = kWidth) { return at::randn({kBatch, kLength, width}); }
Tensor heads() { return at::randn({kBatch, kLength, kHeads, kSize}).transpose(1, 2); }

struct Case {
  const char* name;
  Tensors operands;
  std::function<Tensors(const Tensors&)> run;
};

Tensors adamw_of(const Tensors& x) {
  const auto p = x[0].clone(), m = x[2].clone(), v = x[3].square();
  adamw(p, x[1], m, v, 1e-3, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 0.7);
  return {p, m, v};
}

Tensors attention_of(const Tensors& x) {
  const auto [output, log_sum] = canonical_attention(x[0], x[1], x[2], true, 0.125);
  const auto [q, k, v] = canonical_attention_backward(x[3], x[0], x[1], x[2], output, log_sum, true, 0.125);
  return {output, log_sum, q, k, v};
}

std::vector<Case> cases() {
  const auto norms = at::rand({kBatch, kLength}), weight = at::randn({kWidth});
  const auto classes = at::randint(-1, kWidth, {kBatch, kLength}, at::kLong);
  const auto angles = at::randn({kLength, kSize / 2});
  return {
      {"norm", {rows(), weight}, [](auto& x) { return Tensors{std::get<0>(rms_norm(x[0], x[1], 1e-5))}; }},
      {"norm's gradient",
       {rows(), rows(), norms, weight},
       [](auto& x) {
         const auto [dx, dw] = rms_norm_backward(x[0], x[1], x[2], x[3]);
         return Tensors{rms_norm_input_gradient(x[0], x[1], x[2], x[3]), dx, dw};
       }},
      {"gates", {at::randn({kRows, 2, kWidth})}, [](auto& x) { return Tensors{swiglu(x[0])}; }},
      {"gates' gradient",
       {at::randn({kRows, kWidth}), at::randn({kRows, 2, kWidth})},
       [](auto& x) { return Tensors{swiglu_backward(x[0], x[1])}; }},
      {"rotation",
       {heads(), at::cos(angles), at::sin(angles)},
       [](auto& x) {
         return Tensors{rotate_pairs(x[0], x[1], x[2], false), rotate_pairs(x[0], x[1], x[2], true)};
       }},
      {"cross-entropy",
       {norms, rows(), norms, classes},
       [](auto& x) { return Tensors{cross_entropy_backward(x[0], x[1], x[2], x[3])}; }},
      {"softmax",
       {rows(), rows()},
       [](auto& x) {
         return Tensors{kernels::softmax(x[0], -1), kernels::log_softmax(x[0], 1), softmax_backward(x[0], x[1], 2),
                        log_softmax_backward(x[0], x[1], 0)};
       }},
      {"elements", {rows()}, [](auto& x) { return Tensors{apply(loops::Function::kSilu, x[0])}; }},
      {"AdamW", {rows(), rows(), rows(), rows()}, adamw_of},
      {"products",
       {rows(), at::randn({131, kWidth}), rows(131)},
       [](auto& x) {
         return Tensors{kernels::linear(x[0], x[1]), kernels::product(x[2], x[1]), weight_gradient(x[2], x[0], {})};
       }},
      {"products of batches",
       {at::randn({9, 65, 129}), at::randn({9, 129, 70})},
       [](auto& x) { return Tensors{kernels::product(x[0], x[1])}; }},
      {"attention", {heads(), heads(), heads(), heads()}, attention_of},
  };
}

Tensors on_threads(int threads, const Case& one) {
  const testing::Threads scope(threads);
  return one.run(one.operands);
}

TEST(ThreadCounts, ChangeNoBit) {
  at::manual_seed(7);
  for (const auto& one : cases()) {
    const auto expected = on_threads(1, one);
    for (const int threads : {2, 3, 7}) {
      const auto found = on_threads(threads, one);
      for (size_t r = 0; r < expected.size(); ++r)
        EXPECT_TRUE(testing::same_bits(found[r], expected[r])) << one.name << " " << r << " on " << threads;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
