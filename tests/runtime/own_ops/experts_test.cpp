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

constexpr const char* kNames[] = {"output", "gradient of x", "of weights", "of gate", "of up", "of down"};

TEST(Experts, GiveThePlainResultOnEveryMesh) {
  const auto values = ExpertValues::drawn();
  const auto expected = testing::computed(values, [](const Tensor& t, bool) { return t; });
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
