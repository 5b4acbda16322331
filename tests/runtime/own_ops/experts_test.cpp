// Experts on meshes, against plain tensors and one rank.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/cases/expert_layer.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::ExpertPlace;
using testing::ExpertValues;
using testing::kPlaces;
using testing::message_of;
using testing::same_bits;

std::vector<Tensor> on_mesh(const ExpertValues& values, const ExpertPlace& place, Numerics numerics) {
  return testing::on_mesh(values, place, *testing::world_of(place, numerics));
}

/// The same of LibTorch's ops alone: every expert computes every token, and those that were chosen are added.
std::vector<Tensor> by_hand(const ExpertValues& v) {
  auto leaves = v.differentiated();
  for (auto& leaf : leaves) leaf = leaf.detach().clone().requires_grad_(true);
  const auto linear = [](const Tensor& rows, const Tensor& weight) {
    return at::einsum("bel...i,eoi->bel...o", {rows, weight});
  };
  const auto rows = leaves[0].unsqueeze(1).expand({-1, testing::kExperts, -1, -1});
  const auto out = linear(at::silu(linear(rows, leaves[2])) * linear(rows, leaves[3]), leaves[4]);
  const auto chosen = at::one_hot(v.experts + 1, testing::kExperts + 1).narrow(3, 1, testing::kExperts).to(at::kFloat);
  const auto y = at::einsum("blk,blke,belw->blw", {leaves[1], chosen, out});
  y.backward(at::mul(y, y).detach());
  std::vector<Tensor> results{y.detach()};
  for (const auto& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

constexpr const char* kNames[] = {"output", "gradient of x", "of weights", "of gate", "of up", "of down"};

TEST(Experts, GiveThePlainResultOnEveryMesh) {
  const auto values = ExpertValues::drawn();
  const auto expected = by_hand(values);
  const auto plain = testing::computed(values, [](const Tensor& t, bool) { return t; });
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_TRUE(at::allclose(plain[i], expected[i], 1e-4, 1e-4)) << "plain tensors: " << kNames[i];
  for (const auto numerics : {Numerics::kNative, Numerics::kCanonical})
    for (const auto& place : kPlaces) {
      const auto actual = on_mesh(values, place, numerics);
      for (size_t i = 0; i < actual.size(); ++i)
        EXPECT_TRUE(at::allclose(actual[i], expected[i], 1e-4, 1e-4))
            << place.mesh << " " << place.rows << ": " << kNames[i] << " differs by "
            << (actual[i] - expected[i]).abs().max();
    }
}

TEST(Experts, GiveOneRanksBitsOnEveryMesh) {
  const auto values = ExpertValues::drawn();
  const auto expected = on_mesh(values, testing::kOneRank, Numerics::kCanonical);
  for (const auto& place : kPlaces) {
    const auto actual = on_mesh(values, place, Numerics::kCanonical);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_TRUE(same_bits(actual[i], expected[i])) << place.mesh << " " << place.rows << ": " << kNames[i];
  }
}

TEST(Experts, OfNoTokensHaveNoGradient) {
  const auto values = ExpertValues::drawn();
  const auto results = on_mesh(values, kPlaces[1], Numerics::kCanonical);
  for (const size_t i : {3u, 4u, 5u}) {
    EXPECT_EQ(results[i][3].count_nonzero().item<int64_t>(), 0) << kNames[i];
    EXPECT_GT(results[i][2].count_nonzero().item<int64_t>(), 0) << kNames[i];
  }
}

/// Llama 4's: the choice's weight is the token's, not the result's.
TEST(Experts, TakeWeightedRows) {
  const auto values = ExpertValues::drawn();
  auto x = values.x.clone().requires_grad_(true), weights = values.weights.clone().requires_grad_(true);
  const auto rows = mesh_ops::expert_rows(x, values.experts, weights, testing::kExperts);
  const auto chosen =
      at::one_hot(values.experts + 1, testing::kExperts + 1).narrow(3, 1, testing::kExperts).to(at::kFloat);
  auto other_x = values.x.clone().requires_grad_(true), other_weights = values.weights.clone().requires_grad_(true);
  const auto expected = at::einsum("blw,blk,blke->belw", {other_x, other_weights, chosen});
  EXPECT_TRUE(at::allclose(rows, expected));
  const auto gradient = at::randn(rows.sizes());
  rows.backward(gradient);
  expected.backward(gradient);
  EXPECT_TRUE(at::allclose(x.grad(), other_x.grad(), 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(weights.grad(), other_weights.grad(), 1e-4, 1e-4));
}

TEST(Experts, AddATokensRowsInTheOrderOfItsChoices) {
  const auto rows = at::tensor({1e8F, 1.0F, -1e8F}).view({1, 3, 1, 1});
  const auto sum = [&](std::vector<int64_t> choices) {
    return mesh_ops::expert_sums(rows, at::tensor(choices).view({1, 1, 3}), {}).item<float>();
  };
  EXPECT_EQ(sum({0, 2, 1}), 1);
  EXPECT_EQ(sum({1, 0, 2}), 0);
}

TEST(Experts, RefuseChoicesThatAreNone) {
  const auto x = at::ones({1, 2, 3});
  const auto chosen = [](std::vector<int64_t> choices) { return at::tensor(choices).view({1, 2, 2}); };
  EXPECT_EQ(message_of<BadInput>([&] {
              mesh_ops::expert_rows(x, chosen({0, 1, 2, 2}), {}, 4);
            }),
            "mesh::expert_rows: a token chose one expert twice");
  EXPECT_EQ(message_of<BadInput>([&] {
              mesh_ops::expert_rows(x, chosen({0, 1, 2, 4}), {}, 4);
            }),
            "mesh::expert_rows: a token chose expert 4 of 4");
}

}  // namespace
}  // namespace lockstep
