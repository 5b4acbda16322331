// float8 numbers, which LibTorch neither adds nor promotes, on a mesh.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

class Float8 : public ::testing::TestWithParam<c10::ScalarType> {
 protected:
  at::Tensor plain() const { return at::arange(-6, 6).reshape({4, 3}).to(GetParam()); }
  std::unique_ptr<World> world_ = simulated_world({{"a", 2}});
  const Mesh& mesh_ = world_->mesh("a=2");
  Layout cut(int dim) const { return Layout(mesh_, {Placement::shard(dim)}); }
};

TEST_P(Float8, IsCast) {
  const auto x = distribute(plain(), cut(0));
  for (const auto to : {c10::kFloat, c10::kBFloat16, c10::kLong})
    EXPECT_TRUE(same_bits(gather(x.to(to)), plain().to(to))) << to;
  const auto back = distribute(plain().to(c10::kFloat), cut(1)).to(GetParam());
  EXPECT_TRUE(same_bits(gather(back), plain()));
}

TEST_P(Float8, IsChosen) {
  const auto condition = plain().to(c10::kFloat).gt(0);
  const auto expected = at::where(condition, plain(), at::zeros_like(plain()));
  const auto actual = at::where(distribute(condition, cut(0)), distribute(plain(), cut(0)),
                                distribute(at::zeros_like(plain()), cut(0)));
  EXPECT_TRUE(same_bits(gather(actual), expected));
}

/// Cut along the contracted dimension ranks would have summands, which nobody adds.
TEST_P(Float8, IsNotAddedUpFromRanks) {
  const auto left = plain(), right = plain().t().contiguous();
  const auto expected = at::tensordot(left, right, {1}, {0});
  const auto actual = at::tensordot(distribute(left, cut(1)), distribute(right, cut(0)), {1}, {0});
  EXPECT_FALSE(layout_of(actual).any_partial());
  EXPECT_TRUE(same_bits(gather(actual), expected));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Float8, ::testing::Values(c10::kFloat8_e4m3fn, c10::kFloat8_e5m2));

}  // namespace
}  // namespace lockstep::testing
