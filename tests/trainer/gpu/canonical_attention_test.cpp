// Canonical attention on a GPU beside the CPU's, in all bits: shared heads, masks that start later, documents, dropout,
// keys in blocks, more keys than a block has.
#include "runtime/kernels/tensors/canonical_attention.h"

#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tests/support/message_of.h"
#include "tests/trainer/gpu/canonical_results.h"

namespace lockstep {
namespace {

using at::Tensor;
using kernels::AttentionRows;
using kernels::ContractedRange;
using testing::expect_cpu_bits;

struct Shape {
  int64_t batch, heads, group, queries, keys, first_row, depth, width;
  bool causal;
};

class CanonicalAttention : public testing::CanonicalKernels {
 protected:
  /// Of one shape, forward and backward, with what rows bring along.
  void expect_cpu_results(const Shape& s, const AttentionRows& with = {}, const ContractedRange& rows = {}) {
    const auto what =
        fmt::format("{} rows from {}, {} keys, {} and {} elements", s.queries, s.first_row, s.keys, s.depth, s.width);
    const auto query = make({s.batch, s.queries, s.heads * s.group, s.depth}).transpose(1, 2);
    const auto key = make({s.batch, s.heads, s.keys, s.depth}), value = sparse({s.batch, s.heads, s.keys, s.width});
    const auto there = [](const AttentionRows& all) {
      return AttentionRows{testing::on_device(all.places), testing::on_device(all.draws), all.dropout};
    };
    const auto given = [&](const Tensor& like) { return like.is_cuda() ? there(with) : with; };
    const auto forward = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
      return kernels::canonical_attention(q, k, v, s.causal, 0.3, s.first_row, given(q));
    };
    expect_cpu_bits("attention, " + what, forward, query, key, value);
    const auto [output, log_sum] = forward(query, key, value);
    const auto backward = [&](const Tensor& g, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
                              const Tensor& l) {
      return kernels::canonical_attention_backward(g, q, k, v, o, l, s.causal, 0.3, s.first_row, rows, given(q));
    };
    expect_cpu_bits("its gradients, " + what, backward, make(output.sizes()), query, key, value, output, log_sum);
  }
};

INSTANTIATE_TEST_SUITE_P(Gpu, CanonicalAttention, ::testing::Values(c10::kFloat, c10::kBFloat16), testing::dtype_name);

TEST_P(CanonicalAttention, OfAnyShape) {
  for (const Shape& shape : {Shape{2, 3, 1, 9, 9, 0, 8, 8, true},
                             {1, 2, 2, 5, 5, 0, 16, 4, false},
                             {2, 1, 3, 4, 9, 5, 33, 40, true},
                             {1, 1, 1, 1, 1, 0, 1, 1, true},
                             {0, 2, 1, 3, 3, 0, 8, 8, true},
                             {1, 1, 2, 3, 0, 0, 8, 8, false},
                             {1, 1, 2, 100, 100, 0, 8, 8, true},
                             {1, 1, 1, 3, 600, 580, 8, 6, true},
                             {1, 1, 1, 300, 290, 0, 4, 4, true},
                             {1, 1, 1, 3, 5, 0, 256, 256, false}})
    expect_cpu_results(shape);
}

TEST_P(CanonicalAttention, OfPartsOfTheRows) {
  const int64_t leaf = SumTree::over_elements(300).leaf;
  expect_cpu_results({2, 2, 2, 3 * leaf, 300, 2 * leaf, 8, 8, true}, {}, {2 * leaf, 300});
}

TEST_P(CanonicalAttention, OfDocumentsAndWithDropout) {
  const Shape shape{2, 2, 2, 70, 70, 0, 8, 12, true};
  const auto places = at::arange(70).remainder(23).expand({2, 70}).contiguous();
  const auto draws = kernels::attention_draws(at::empty({2, 4, 70, 8}), 70, 0);
  expect_cpu_results(shape, {.places = places});
  expect_cpu_results(shape, {.draws = draws, .dropout = 0.3});
  expect_cpu_results(shape, {.places = places, .draws = draws, .dropout = 1});
  // A document that begins within a block and goes on in the next.
  expect_cpu_results({1, 1, 1, 300, 300, 0, 4, 4, true},
                     {.places = at::cat({at::arange(5), at::arange(295)}).view({1, 300})});
}

constexpr int64_t kFirst = 256, kLast = 60, kRows = kFirst + kLast;

/// As in a ring: some keys, then the others.
TEST_P(CanonicalAttention, OfKeysInBlocks) {
  const auto query = make({1, 2, kRows, 8}), key = make({1, 1, kRows, 8}), value = make({1, 1, kRows, 6});
  const auto over = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    const auto wide = q.options().dtype(c10::kFloat);
    auto sums = at::zeros({1, 2, kRows, 6}, wide), weights = at::zeros({1, 2, kRows, kernels::kAttentionWeights}, wide);
    const std::pair<int64_t, int64_t> blocks[] = {{0, kFirst}, {kFirst, kLast}};
    for (const auto& [first, count] : blocks)
      std::tie(sums, weights) = kernels::attention_over(q, k.narrow(2, first, count), v.narrow(2, first, count), sums,
                                                        weights, true, 0.3, -first);
    return kernels::attention_result(sums, weights);
  };
  expect_cpu_bits("blocks", over, query, key, value);
  const auto [output, log_sum] = over(query, key, value);
  EXPECT_TRUE(testing::same_bits(output.to(query.scalar_type()),
                                 std::get<0>(kernels::canonical_attention(query, key, value, true, 0.3))));
  const auto back = [](const Tensor& g, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
                       const Tensor& l) {
    const auto before = at::zeros(q.sizes(), q.options().dtype(c10::kFloat));
    const auto [dq, dk, dv] = kernels::attention_over_backward(g, q, k.narrow(2, 0, kFirst), v.narrow(2, 0, kFirst), o,
                                                               l, before, true, 0.3, 0, 0, kRows);
    return kernels::attention_over_backward(g, q, k.narrow(2, kFirst, kLast), v.narrow(2, kFirst, kLast), o, l, dq,
                                            true, 0.3, -kFirst, 0, kRows);
  };
  expect_cpu_bits("gradients", back, make(output.sizes()), query, key, value, output.to(query.scalar_type()), log_sum);
}

/// What no call before has left: the rows are NaN from there on.
TEST_P(CanonicalAttention, OfAStateThatIsNone) {
  const auto over = [](const Tensor& q, const Tensor& k, const Tensor& sums, const Tensor& weights) {
    const auto [more, others] = kernels::attention_over(q, k, k, sums, weights, false, 0.3, 0);
    return kernels::attention_result(more, others);
  };
  auto weights = make({1, 1, 3, kernels::kAttentionWeights}, c10::kFloat).abs();
  weights[0][0][1][16] = NAN, weights[0][0][2][17] = 0;  // the highest exponent, and whether there is one
  const auto state = [](const Tensor& q, const Tensor& k, const Tensor& sums, const Tensor& before) {
    return kernels::attention_over(q, k, k, sums, before, false, 0.3, 0);
  };
  // Scores that round to -0 and to +0: which of them stays is chance.
  const auto key = at::cat({at::full({16}, -3.0), at::tensor({-0.2}), at::full({15}, -3.0), at::tensor({0.2})});
  expect_cpu_bits("zeros", state, at::ones({1, 1, 1, 1}).to(GetParam()), key.view({1, 1, 33, 1}).to(GetParam()),
                  at::zeros({1, 1, 1, 1}), at::zeros({1, 1, 1, kernels::kAttentionWeights}));
  expect_cpu_bits("states", over, make({1, 1, 3, 8}), make({1, 1, 20, 8}), make({1, 1, 3, 8}, c10::kFloat), weights);
}

TEST_P(CanonicalAttention, KeepsNumbersThatAreNotFinite) {
  const auto query = with_special_numbers(make({1, 2, 9, 8})), key = make({1, 2, 9, 8});
  const auto forward = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    return kernels::canonical_attention(q, k, v, true, 0.3);
  };
  expect_cpu_bits("queries", forward, query, key, key);
  expect_cpu_bits("values", forward, key, key, query);
}

TEST_P(CanonicalAttention, OfWideHeadsIsRefused) {
  const auto x = make({1, 1, 2, 257}).to(c10::kCUDA);
  EXPECT_EQ(testing::message_of<BadInput>([&] { kernels::canonical_attention(x, x, x, true, 1); }),
            "canonical attention on a GPU takes heads of at most 256 elements, not 257 and 257");
}

}  // namespace
}  // namespace lockstep
