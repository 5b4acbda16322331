// Indices of the whole tensor that were taken for a shard's, or the other way round.
#include <limits>

#include "tests/runtime/known_errors/on_mesh.h"

namespace lockstep::testing {
namespace {

constexpr const char* kCuts[] = {"[tp=S(0)]", "[tp=S(1)]", "[tp=P(sum)]", "[]"};

TEST(PyTorch168940, TheIndicesOfAMaximumAreThoseOfTheWhole) {
  const OnMesh three({{"tp", 3}});
  const auto plain = exact_tensor({7, 5});
  for (const char* layout : kCuts) {
    const auto x = three.put(plain, layout);
    for (const int64_t dim : {0, 1}) {
      expect_same(std::get<1>(at::max(x, dim)), std::get<1>(at::max(plain, dim)));
      expect_same(std::get<1>(at::min(x, dim)), std::get<1>(at::min(plain, dim)));
    }
  }
}

TEST(PyTorch173936, AnArgumentOfTheMaximumIsNoSum) {
  const OnMesh three({{"tp", 3}});
  const auto plain = exact_tensor({7, 5});
  for (const char* layout : kCuts) {
    const auto x = three.put(plain, layout);
    expect_same(at::argmax(x, 0), at::argmax(plain, 0));
    expect_same(at::argmin(x, 1), at::argmin(plain, 1));
    expect_same(at::argmax(x), at::argmax(plain));
  }
}

/// tenstorrent/tt-mlir
TEST(TtMlir8623, ShardedArgumentsOfAMaximumAreNotAdded) {
  const OnMesh mesh({{"dp", 2}, {"tp", 2}});
  const auto plain = exact_tensor({8, 8});
  const auto x = mesh.put(plain, "[dp=S(1), tp=S(1)]");
  expect_same(at::argmax(x, 1), at::argmax(plain, 1));
}

TEST(PyTorch170934, IndicesOfACutDimensionAreGlobal) {
  const OnMesh three({{"tp", 3}});
  const auto plain = exact_tensor({7, 3}), values = exact_tensor({4, 3}) + 100;
  const auto rows = at::tensor({6, 0, 3, 2});
  for (const char* layout : {"[tp=S(0)]", "[tp=S(1)]", "[]"}) {
    auto x = three.put(plain, layout);
    const c10::List<std::optional<at::Tensor>> at_rows({three.put(rows, "[]")}), plain_rows({rows});
    expect_same(at::index(x, at_rows), at::index(plain, plain_rows));
    expect_same(at::index_put(x, at_rows, three.put(values, "[]")), at::index_put(plain, plain_rows, values));
    x.index_put_(at_rows, three.put(values, "[tp=S(0)]"));
    expect_same(x, at::index_put(plain, plain_rows, values));
  }
}

/// As many values as one rank's shard has are not as many as the whole has.
TEST(WrittenValues, OfAShardsSizeAreRefused) {
  const OnMesh two({{"tp", 2}});
  const auto plain = exact_tensor({1, 1, 6});
  auto x = two.put(plain, "[tp=S(2)]");
  const auto first = two.put(at::zeros({1}, at::kLong), "[]");
  const c10::List<std::optional<at::Tensor>> indices({first, first});
  EXPECT_THROW(x.index_put_(indices, two.put(exact_tensor({3}), "[]")), BadInput);
  EXPECT_THROW(at::index_put(x, indices, two.put(exact_tensor({3}), "[]")), std::exception);
  expect_same(x, plain);
  expect_same(at::index_put(x, indices, two.put(exact_tensor({6}) + 7, "[]")), (exact_tensor({6}) + 7).view({1, 1, 6}));
  expect_same(at::index_put(x, indices, two.put(exact_tensor({1}), "[]")), exact_tensor({1}).expand({1, 1, 6}));
}

/// A complex sum that multiplies by 1 + 0i makes a NaN of infinity times 0.
TEST(UnfinishedSums, OfComplexInfinitiesStayInfinite) {
  const OnMesh three({{"tp", 3}});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto plain = at::complex(at::tensor({kInfinity, 1.0f, -kInfinity}), at::tensor({2.0f, -kInfinity, 3.0f}));
  expect_same(at::isnan(three.put(plain, "[tp=P(sum)]")), at::isnan(plain));
  expect_same(three.put(plain, "[tp=P(sum)]").clone(), plain);
}

TEST(PyTorch139735, WhatIsWrittenThroughASliceArrives) {
  const OnMesh three({{"tp", 3}});
  for (const char* layout : {"[tp=S(0)]", "[tp=S(1)]", "[]"}) {
    const auto plain = exact_tensor({7, 5}).clone(), x = three.put(plain, layout);
    for (const auto& tensor : {plain, x}) {
      tensor.slice(0, 2, 6).zero_();
      tensor.slice(1, 1, 3).fill_(5);
      tensor.select(0, 6).mul_(2);
    }
    expect_same(x, plain);
  }
}

TEST(PyTorch160697, TwoLookUpsHaveAMaskEach) {
  const OnMesh three({{"tp", 3}});
  const auto plain = exact_tensor({8, 2}), first = at::tensor({7, 0, 3}), second = at::tensor({1, 1, 6});
  const auto gradient = [&](const at::Tensor& table, const auto& put) {
    const auto leaf = table.detach().requires_grad_();
    const auto one = at::embedding(leaf, put(first)), other = at::embedding(leaf, put(second));
    (one * 3 + other * 5).sum().backward();  // both backward passes after both look-ups
    return leaf.grad();
  };
  const auto expected = gradient(plain, [](const at::Tensor& x) { return x; });
  for (const char* layout : {"[tp=S(0)]", "[tp=S(1)]", "[]"})
    expect_same(gradient(three.put(plain, layout), [&](const at::Tensor& x) { return three.put(x, "[]"); }), expected);
}

/// tenstorrent/tt-xla
TEST(TtXla5469, CountingGoesOnFromShardToShard) {
  const OnMesh three({{"tp", 3}});
  const auto options = at::TensorOptions().dtype(c10::kLong).device(three.mesh.all().device());
  const auto plain = at::arange(7, c10::kLong);
  const auto counted = at::arange(7, options.device(c10::Device(c10::kPrivateUse1)));
  expect_same(counted, plain);
  expect_same(redistribute(counted, three.layout("[tp=S(0)]")) * 2, plain * 2);
  expect_same(at::cumsum(at::ones_like(three.put(plain, "[tp=S(0)]")), 0) - 1, plain);
}

}  // namespace
}  // namespace lockstep::testing
