#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tests/support/message_of.h"
#include "tests/support/threads.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::same_bits;

constexpr double kScale = 0.35;

/// Query, key and value with memory [batch, length, heads, size], and what comes out of them.
struct Attention {
  Attention(int64_t batch, int64_t heads, int64_t group, int64_t rows, int64_t keys, int64_t size, bool causal_mask,
            int64_t first = 0, c10::ScalarType dtype = c10::kFloat)
      : causal(causal_mask), first_row(first) {
    const auto make = [&](int64_t length, int64_t count) {
      return at::randn({batch, length, count, size}, c10::kDouble).to(dtype).transpose(1, 2);
    };
    query = make(rows, heads * group), gradient = make(rows, heads * group);
    key = make(keys, heads), value = make(keys, heads);
  }

  Attention& run() {
    std::tie(output, log_sum) = kernels::canonical_attention(query, key, value, causal, kScale, first_row);
    std::tie(dq, dk, dv) = kernels::canonical_attention_backward(gradient, query, key, value, output, log_sum, causal,
                                                                 kScale, first_row, range);
    return *this;
  }
  Attention only_rows(int64_t from, int64_t to) const {
    Attention part = *this;
    part.query = query.slice(2, from, to), part.gradient = gradient.slice(2, from, to);
    part.first_row = first_row + from;
    part.range = {from, query.size(2)};
    return part.run();
  }

  bool causal;
  int64_t first_row;
  kernels::ContractedRange range;
  Tensor query, key, value, gradient, output, log_sum, dq, dk, dv;
};

/// Softmax of masked scores, by LibTorch in float64, differentiated by autograd.
Attention by_libtorch(const Attention& a) {
  Attention b = a;
  const auto leaf = [](const Tensor& x) { return x.to(c10::kDouble).detach().requires_grad_(); };
  const auto query = leaf(a.query), key = leaf(a.key), value = leaf(a.value);
  const int64_t group = a.query.size(1) / a.key.size(1);
  const auto spread = [&](const Tensor& x) { return x.repeat_interleave(group, 1); };
  auto scores = at::matmul(query, spread(key).transpose(2, 3)) * kScale;
  if (a.causal) {
    const auto mask = at::arange(a.key.size(2)) > (at::arange(a.query.size(2)) + a.first_row).unsqueeze(1);
    scores = scores.masked_fill(mask, -std::numeric_limits<double>::infinity());
  }
  b.output = at::matmul(at::softmax(scores, -1), spread(value));
  b.log_sum = at::logsumexp(scores, -1) / std::log(2.0);
  (b.output * a.gradient.to(c10::kDouble)).sum().backward();
  b.dq = query.grad(), b.dk = key.grad(), b.dv = value.grad();
  return b;
}

double worst(const Tensor& a, const Tensor& b) { return (a.to(c10::kDouble) - b).abs().max().item<double>(); }

void expect_close(const Attention& a, double tolerance) {
  const Attention b = by_libtorch(a);
  EXPECT_LT(worst(a.output, b.output), tolerance);
  EXPECT_LT(worst(a.log_sum, b.log_sum), tolerance);
  EXPECT_LT(worst(a.dq, b.dq), tolerance);
  EXPECT_LT(worst(a.dk, b.dk), tolerance * 4);
  EXPECT_LT(worst(a.dv, b.dv), tolerance * 4);
}

TEST(AttentionTensors, AreSoftmaxAttention) {
  expect_close(Attention(2, 2, 3, 70, 70, 24, true).run(), 2e-5);
  expect_close(Attention(1, 2, 1, 33, 300, 64, true, 267).run(), 2e-5);
  expect_close(Attention(2, 1, 2, 40, 21, 17, false).run(), 2e-5);
  expect_close(Attention(1, 2, 2, 300, 300, 16, true, 0, c10::kDouble).run(), 1e-12);
  expect_close(Attention(1, 1, 4, 20, 600, 40, false, 0, c10::kDouble).run(), 1e-12);
  expect_close(Attention(1, 2, 2, 40, 40, 16, true, 0, c10::kBFloat16).run(), 0.1);
}

/// Places of rows in their documents: bad ones are named, whatever they would read.
TEST(AttentionTensors, RefusesPlacesThatNoDocumentHas) {
  const Attention a(2, 1, 1, 3, 3, 4, true);
  const auto message = [&](const Tensor& places) {
    return testing::message_of<BadInput>(
        [&] { kernels::document_attention(a.query, a.key, a.value, places, {}, 0, kScale, 0); });
  };
  const auto of = [](std::vector<int64_t> values) { return at::tensor(values, at::kLong).view({2, -1}); };
  EXPECT_EQ(
      message(of({0, 1, 2, 0, 0, 2})),
      "attention in documents: row 2 of sample 1 (of those here) has place 2 in its document, expected one from 0 "
      "to 1");
  EXPECT_THAT(message(of({0, 1, -1, 0, 0, 0})), ::testing::HasSubstr("row 2 of sample 0 (of those here) has place -1"));
  EXPECT_THAT(message(of({std::numeric_limits<int64_t>::max(), 0, 0, 0, 0, 0})), ::testing::HasSubstr("row 0"));
  EXPECT_THAT(message(of({0, 1, 0, 0})), ::testing::HasSubstr("places are Long [2, 2], expected Long [2, 3]"));
  EXPECT_THAT(message(of({0, 1, 2, 5, 6, 0}).to(at::kInt)), ::testing::HasSubstr("places are Int [2, 3]"));
}

/// Documents of 2, 1 and 3 tokens: what a row does not see takes no part, NaN or not; the composed form agrees.
TEST(AttentionTensors, InDocumentsAreThoseOfEachAlone) {
  Attention a(1, 2, 2, 6, 6, 8, true);
  const auto places = at::tensor(std::vector<int64_t>{0, 1, 0, 0, 1, 2}, at::kLong).view({1, 6});
  const auto [output, log_sum] = kernels::document_attention(a.query, a.key, a.value, places, {}, 0, kScale, 0);
  const auto [dq, dk, dv] = kernels::document_attention_backward(a.gradient, a.query, a.key, a.value, output, log_sum,
                                                                 places, {}, 0, kScale, 0);
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}, {3, 6}}) {
    const auto cut = [from = from, to = to](const Tensor& x) { return x.slice(2, from, to); };
    Attention alone = a;
    alone.query = cut(a.query), alone.key = cut(a.key), alone.value = cut(a.value), alone.gradient = cut(a.gradient);
    const auto b = by_libtorch(alone);
    for (const auto& [found, expected] :
         {std::pair{output, b.output}, {log_sum, b.log_sum}, {dq, b.dq}, {dk, b.dk}, {dv, b.dv}})
      EXPECT_LT(worst(cut(found), expected), 1e-5) << from;
  }
  const auto [composed, composed_sum] = composed::document_attention(a.query, a.key, a.value, places, {}, 0, kScale, 0);
  EXPECT_LT(worst(composed, output.to(at::kDouble)), 1e-5);
  EXPECT_LT(worst(composed_sum, log_sum.to(at::kDouble)), 1e-5);
  const auto [cq, ck, cv] = composed::document_attention_backward(a.gradient, a.query, a.key, a.value, output, log_sum,
                                                                  places, {}, 0, kScale, 0);
  for (const auto& [found, expected] : {std::pair{cq, dq}, {ck, dk}, {cv, dv}})
    EXPECT_LT(worst(found, expected.to(at::kDouble)), 1e-5);
  auto spoiled = a.value.clone();
  spoiled.select(2, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  const auto [beside, sum] = kernels::document_attention(a.query, a.key, spoiled, places, {}, 0, kScale, 0);
  EXPECT_TRUE(same_bits(beside.slice(2, 2, 6), output.slice(2, 2, 6)));
  EXPECT_TRUE(beside.select(2, 1).isnan().all().item<bool>());
}

/// The composed form draws the same factors, and computes the same but for rounding: of documents, of rows that are no
/// first ones, and beyond what 32 bits count.
TEST(AttentionTensors, ThatDropsIsTheComposedForm) {
  for (const auto& [dtype, first_row, share] :
       {std::tuple{c10::kFloat, 0, 0.3}, {c10::kFloat, 5, 0.75}, {c10::kDouble, 3, 0.3}, {c10::kDouble, 0, 1.0}}) {
    const Attention a(2, 2, 2, 37, 37 + first_row, 8, true, first_row, dtype);
    const auto places = at::arange(37).remainder(23).expand({2, 37});
    auto draws = kernels::attention_draws(a.query, 37 + first_row, first_row);
    draws.select(3, 2).add_((int64_t{5} << 33) + 1);
    const auto both = [&, first_row = first_row, share = share](auto&& forward, auto&& backward) {
      const auto [output, log_sum] = forward(a.query, a.key, a.value, places, draws, share, kScale, first_row);
      const auto [dq, dk, dv] =
          backward(a.gradient, a.query, a.key, a.value, output, log_sum, places, draws, share, kScale, first_row);
      return std::vector<Tensor>{output, log_sum, dq, dk, dv};
    };
    const auto ours = both(kernels::document_attention, kernels::document_attention_backward);
    const auto composed = both(composed::document_attention, composed::document_attention_backward);
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_LT(worst(composed[i], ours[i].to(c10::kDouble)), dtype == c10::kDouble ? 1e-12 : 1e-5) << i;
  }
}

/// float16, which no kernel of ours takes, drops what float32 drops.
TEST(AttentionTensors, ThatDropsIn16BitsIsTheComposedForm) {
  const Attention a(1, 2, 2, 37, 37, 8, true);
  const auto places = at::arange(37).unsqueeze(0);
  const auto draws = kernels::attention_draws(a.query, 37, 0);
  const auto half = [](const Tensor& x) { return x.to(c10::kHalf); };
  const auto [expected, log_sum] = kernels::document_attention(a.query, a.key, a.value, places, draws, 0.5, kScale, 0);
  const auto [output, sum] =
      kernels::document_attention(half(a.query), half(a.key), half(a.value), places, draws, 0.5, kScale, 0);
  EXPECT_EQ(output.scalar_type(), c10::kHalf);
  EXPECT_LT(worst(output, expected.to(c10::kDouble)), 2e-2);
}

TEST(AttentionTensors, RefusesDrawsThatNoQueryHas) {
  const Attention a(2, 1, 1, 3, 3, 4, true);
  const auto places = at::arange(3).expand({2, 3});
  const auto good = kernels::attention_draws(a.query, 3, 0);
  const auto message = [&](const std::optional<Tensor>& draws, double share = 0.5) {
    return testing::message_of<BadInput>(
        [&] { kernels::document_attention(a.query, a.key, a.value, places, draws, share, kScale, 0); });
  };
  EXPECT_EQ(message(good), "no such error");
  EXPECT_EQ(message(std::nullopt, 0), "no such error");
  EXPECT_EQ(message(std::nullopt), "attention drops some of its weights, and has no draws that say which");
  EXPECT_EQ(message(good, 1.5), "dropout probability 1.5 should be in [0, 1]");
  EXPECT_THAT(message(good.to(c10::kInt)),
              ::testing::HasSubstr("draws are Int [2, 1, 3, 3], expected Long [2, 1, 3, 3]"));
  EXPECT_THAT(message(good.narrow(2, 0, 2)), ::testing::HasSubstr("draws are Long [2, 1, 2, 3], expected"));
  auto negative = good.clone();
  negative[1][0][2][2] = 1;
  EXPECT_EQ(message(negative),
            "attention with dropout: row 2 (of those here) draws from element 1 - 2 on, and has 3 keys");
}

TEST(AttentionTensors, LargeScoresStayFinite) {
  Attention a(1, 1, 1, 40, 600, 16, false, 0, c10::kDouble);
  a.query = a.query * 300;
  expect_close(a.run(), 1e-8);
}

TEST(AttentionTensors, ShardsOfHeadsAndBatchesGiveTheSameBits) {
  const Attention all = Attention(3, 4, 2, 90, 90, 20, true).run();
  Attention part = all;
  const auto cut = [](const Tensor& x, int64_t from, int64_t count) {
    return x.narrow(0, 1, 2).narrow(1, from, count);
  };
  part.query = cut(all.query, 2, 4), part.gradient = cut(all.gradient, 2, 4);
  part.key = cut(all.key, 1, 2), part.value = cut(all.value, 1, 2);
  part.run();
  EXPECT_TRUE(same_bits(part.output, cut(all.output, 2, 4)));
  EXPECT_TRUE(same_bits(part.log_sum, cut(all.log_sum, 2, 4)));
  EXPECT_TRUE(same_bits(part.dq, cut(all.dq, 2, 4)));
  EXPECT_TRUE(same_bits(part.dk, cut(all.dk, 1, 2)));
  EXPECT_TRUE(same_bits(part.dv, cut(all.dv, 1, 2)));
}

/// The sequence is sharded: keys are gathered, gradients of keys are nodes that add up along the tree.
TEST(AttentionTensors, ShardsOfQueryRowsGiveTheSameBits) {
  for (const bool causal : {true, false})
    for (const int64_t length : {128, 257, 600})
      for (const int64_t shards : {2, 3, 4}) {
        const Attention all = Attention(1, 2, 2, length, length, 20, causal).run();
        const auto tree = SumTree::over_elements(length);
        SumJoiner<Tensor> keys(tree), values(tree);
        const auto add = [](const Tensor& left, const Tensor& right) { return left + right; };
        for (int64_t shard = 0; shard < shards; ++shard) {
          const auto cut = [&](int64_t at) { return std::min(tree.leaf_count() * at / shards * tree.leaf, length); };
          const int64_t from = cut(shard), to = cut(shard + 1);
          const Attention part = all.only_rows(from, to);
          EXPECT_TRUE(same_bits(part.output, all.output.slice(2, from, to)));
          EXPECT_TRUE(same_bits(part.dq, all.dq.slice(2, from, to)));
          const auto nodes = cover(tree, from, to - from);
          ASSERT_EQ(part.dk.size(0), static_cast<int64_t>(nodes.size()));
          for (std::size_t p = 0; p < nodes.size(); ++p) {
            keys.add(nodes[p], part.dk[static_cast<int64_t>(p)], add);
            values.add(nodes[p], part.dv[static_cast<int64_t>(p)], add);
          }
        }
        ASSERT_TRUE(keys.is_complete());
        EXPECT_TRUE(same_bits(keys.parts()[0].value, all.dk)) << length << " " << shards;
        EXPECT_TRUE(same_bits(values.parts()[0].value, all.dv)) << length << " " << shards;
      }
}

TEST(AttentionTensors, DoNotDependOnThreads) {
  const Attention expected = Attention(1, 2, 1, 300, 300, 32, true).run();
  for (const int count : {1, 2, 4, 7}) {
    const testing::Threads threads(count);
    const Attention again = Attention(expected).run();
    EXPECT_TRUE(same_bits(again.output, expected.output) && same_bits(again.dq, expected.dq)) << count;
    EXPECT_TRUE(same_bits(again.dk, expected.dk) && same_bits(again.dv, expected.dv)) << count;
  }
}

/// Masked keys take no part, not even as 0 * NaN.
TEST(AttentionTensors, NanStaysWhereItIsAttended) {
  Attention a(1, 1, 2, 70, 70, 20, true);
  const Attention clean = Attention(a).run();
  a.key.select(2, 50).fill_(NAN), a.value.select(2, 50).fill_(NAN);
  a.run();
  EXPECT_TRUE(same_bits(a.output.slice(2, 0, 50), clean.output.slice(2, 0, 50)));
  EXPECT_TRUE(same_bits(a.dq.slice(2, 0, 50), clean.dq.slice(2, 0, 50)));
  EXPECT_TRUE(a.output.slice(2, 50).isnan().all().item<bool>());
}

TEST(AttentionTensors, NanOfARowStaysWithTheKeysItAttends) {
  Attention b(1, 1, 2, 70, 70, 20, true);
  const Attention clean = Attention(b).run();
  b.query.select(2, 30).fill_(NAN), b.gradient.select(2, 30).fill_(NAN);
  b.run();
  EXPECT_TRUE(same_bits(b.dk.slice(2, 31), clean.dk.slice(2, 31)));
  EXPECT_TRUE(same_bits(b.dv.slice(2, 31), clean.dv.slice(2, 31)));
  EXPECT_TRUE(b.dv.slice(2, 0, 31).isnan().all().item<bool>());
}

TEST(AttentionTensors, ResultsLieByLength) {
  const Attention a = Attention(2, 2, 2, 9, 9, 8, true).run();
  for (const auto& x : {a.output, a.log_sum, a.dq, a.dk, a.dv}) EXPECT_TRUE(x.transpose(1, 2).is_contiguous());
}

TEST(AttentionTensors, TakeEmptyOperands) {
  const Attention no_keys = Attention(1, 1, 1, 5, 0, 4, false).run();
  EXPECT_TRUE(same_bits(no_keys.output, at::zeros({1, 1, 5, 4})));
  EXPECT_TRUE(same_bits(no_keys.dq, at::zeros({1, 1, 5, 4})));
  const Attention no_rows = Attention(1, 2, 2, 0, 5, 4, true).run();
  EXPECT_TRUE(same_bits(no_rows.dk, at::zeros({1, 2, 5, 4})));
  EXPECT_TRUE(same_bits(no_rows.dv, at::zeros({1, 2, 5, 4})));
  EXPECT_EQ(Attention(1, 0, 2, 3, 5, 4, true).key.numel(), 0);
}

TEST(AttentionTensors, RefuseWhatDoesNotFit) {
  const auto x = at::ones({1, 4, 3, 8}), three = at::ones({1, 3, 3, 8});
  EXPECT_THROW(kernels::canonical_attention(x, three, three, true, kScale), BadInput);
  EXPECT_THROW(kernels::canonical_attention(x, x, x.to(c10::kDouble), true, kScale), BadInput);
  EXPECT_THROW(kernels::canonical_attention(x[0], x[0], x[0], true, kScale), BadInput);
}

}  // namespace
}  // namespace lockstep
