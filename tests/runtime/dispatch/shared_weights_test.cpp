// Simulated ranks that have a weight in common pack it once: each gets the bits of one device, also after the weight
// was written, and of weights that not all of them share.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kBatch = 8, kPositions = 5, kIn = 96, kOut = 640;

/// input x weight, its gradient for the input, and the first again after the weight was written.
struct Products {
  explicit Products(const at::Tensor& input, at::Tensor weight) {
    first = at::linear(input, weight);
    back = at::matmul(first, weight);
    weight.mul_(-3);
    second = at::linear(input, weight);
  }
  at::Tensor first, back, second;
};

void expect_equal(const Products& one, const Products& many, const std::string& name) {
  EXPECT_TRUE(same_bits(gather(many.first), one.first)) << name;
  EXPECT_TRUE(same_bits(gather(many.back), one.back)) << name;
  EXPECT_TRUE(same_bits(gather(many.second), one.second)) << name;
}

class SharedWeights : public ::testing::TestWithParam<c10::ScalarType> {
 protected:
  /// At least 16 KB of a weight on each rank.
  void check(const std::vector<MeshAxis>& axes, std::string_view sharded_weight, std::string_view gathered_weight,
             std::string_view input_layout) const {
    const auto input = exact_tensor({kBatch, kPositions, kIn}, GetParam());
    const auto weight = exact_tensor({kOut, kIn}, GetParam(), 7);
    const auto world = simulated_world(axes, {.numerics = lockstep::Numerics::kCanonical});
    const auto& mesh = world->mesh(axes);
    const auto one_world = simulated_world({{"dp_shard", 1}}, {.numerics = lockstep::Numerics::kCanonical});
    const auto& alone = one_world->mesh("dp_shard=1");
    const auto placed = distribute(weight, Layout::parse(mesh, sharded_weight));
    const auto gathered = redistribute(placed, Layout::parse(mesh, gathered_weight));
    const auto& ranks = sharded(gathered).shards()->local_tensors();
    EXPECT_EQ(
        std::ranges::count(ranks, ranks[0].const_data_ptr(), [](const auto& rank) { return rank.const_data_ptr(); }),
        mesh.axis_size(mesh.find_axis("dp_shard")));
    const Products many(distribute(input, Layout::parse(mesh, input_layout)), gathered);
    const auto whole = Layout::replicated(alone);
    Products one(distribute(input, whole), distribute(weight, whole));
    one.first = gather(one.first), one.back = gather(one.back), one.second = gather(one.second);
    expect_equal(one, many, mesh.text() + " " + std::string(gathered_weight));
    EXPECT_TRUE(same_bits(gather(placed), weight)) << "writes to what was gathered do not reach the parameter";
  }
};

TEST_P(SharedWeights, GiveEachRankOneDevicesBits) {
  check({{"dp_shard", 4}}, "[dp_shard=S(0)]", "[]", "[dp_shard=S(0)]");
  check({{"dp_shard", 4}, {"tp", 2}}, "[dp_shard=S(0)@1, tp=S(0)@0]", "[tp=S(0)]", "[dp_shard=S(0)]");
  check({{"tp", 2}, {"dp_shard", 4}}, "[tp=S(0)@0, dp_shard=S(0)@1]", "[tp=S(0)]", "[dp_shard=S(0)]");
  check({{"dp_shard", 3}}, "[dp_shard=S(1)]", "[]", "[dp_shard=S(0)]");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, SharedWeights, ::testing::Values(c10::kFloat, c10::kDouble, c10::kBFloat16),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

}  // namespace
}  // namespace lockstep::testing
