#include "runtime/dispatch/dispatch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/planning/plan_cache.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::same_bits;

class Dispatch : public ::testing::Test {
 protected:
  std::unique_ptr<World> world_ = testing::simulated_world({{"dp", 2}, {"tp", 2}});
  const Mesh& mesh_ = world_->mesh("dp=2,tp=2");
  at::Tensor put(const at::Tensor& plain, const char* layout) {
    return distribute(plain, Layout::parse(mesh_, layout));
  }
  static std::string text(const at::Tensor& tensor) { return layout_of(tensor).text(); }
};

TEST_F(Dispatch, AddsShards) {
  const auto a = exact_tensor({5, 3}), b = exact_tensor({5, 3}) + 1;
  const auto sum = put(a, "[dp=S(0), tp=S(1)]") + put(b, "[dp=S(0), tp=S(1)]");
  EXPECT_EQ(text(sum), "[dp=S(0), tp=S(1)]");
  EXPECT_TRUE(same_bits(gather(sum), a + b));
}

TEST_F(Dispatch, MultipliesAContractionIntoAPartial) {
  const auto a = exact_tensor({4, 6}), b = exact_tensor({6, 2});
  const auto product = at::mm(put(a, "[dp=S(0), tp=S(1)]"), put(b, "[tp=S(0)]"));
  EXPECT_EQ(text(product), "[dp=S(0), tp=P(sum)]");
  EXPECT_TRUE(same_bits(gather(product), at::mm(a, b)));
}

TEST_F(Dispatch, AddsAScalarOnceToAPartial) {
  const auto a = exact_tensor({4});
  EXPECT_TRUE(same_bits(gather(put(a, "[tp=P(sum)]") + 5), a + 5));
  EXPECT_TRUE(same_bits(gather(put(a, "[tp=P(sum)]") * 5), a * 5));
}

TEST_F(Dispatch, SplitsHeadsOfUnevenShards) {
  const auto world = testing::simulated_world({{"tp", 3}});
  const auto& mesh = world->mesh("tp=3");
  const auto x = exact_tensor({2, 32});
  const auto heads = distribute(x, Layout::parse(mesh, "[tp=S(1:8)]")).view({2, 4, 8});
  EXPECT_EQ(layout_of(heads).text(), "[tp=S(1)]");
  EXPECT_TRUE(same_bits(gather(heads), x.view({2, 4, 8})));
  const auto merged = heads.transpose(0, 1).reshape({4, 16});
  EXPECT_TRUE(same_bits(gather(merged), x.view({2, 4, 8}).transpose(0, 1).reshape({4, 16})));
}

TEST_F(Dispatch, CommunicatesImplicitlyOnlyAsThePolicyAllows) {
  World::Options options;
  options.policy.strict = true;
  const auto world = testing::simulated_world({{"tp", 2}}, options);
  const auto& mesh = world->mesh("tp=2");
  const auto x = distribute(exact_tensor({4, 4}), Layout::parse(mesh, "[tp=S(1)]"));
  EXPECT_THROW(at::_softmax(x, 1, false), BadInput);
  const auto relaxed = put(exact_tensor({4, 4}), "[tp=S(1)]");
  at::_softmax(relaxed, 1, false);
  EXPECT_EQ(world_->traffic().implicit_gathers().at({"_softmax", "[tp=S(1)] is a dimension that it needs whole"}), 1);
}

TEST_F(Dispatch, WritesInPlaceThroughViews) {
  auto x = put(exact_tensor({4, 6}), "[dp=S(0)]");
  auto plain = exact_tensor({4, 6});
  x.narrow(1, 2, 3).add_(1);
  plain.narrow(1, 2, 3).add_(1);
  x.mul_(2);
  plain.mul_(2);
  EXPECT_TRUE(same_bits(gather(x), plain));
}

TEST_F(Dispatch, WritesThroughAViewThatIsACopy) {
  auto x = put(exact_tensor({4, 6}), "[dp=S(0)]");
  auto plain = exact_tensor({4, 6});
  const auto view = x.narrow(0, 1, 2), plain_view = plain.narrow(0, 1, 2);  // of the sharded dimension
  at::Tensor(view).add_(1);
  at::Tensor(plain_view).add_(1);
  EXPECT_TRUE(same_bits(gather(x), plain));
  x.mul_(2);
  plain.mul_(2);
  EXPECT_TRUE(same_bits(gather(view.clone()), plain_view));
  EXPECT_EQ(world_->traffic().implicit_gathers().at(
                {"slice.Tensor", "a write through a view that no view of its shards expresses"}),
            1);
}

TEST_F(Dispatch, WritesThroughAViewOfASum) {
  const auto largest = put(exact_tensor({4, 6}), "[tp=P(max)]");
  auto plain = exact_tensor({4, 6});
  largest.narrow(0, 1, 2).add_(1);
  plain.narrow(0, 1, 2).add_(1);
  EXPECT_TRUE(same_bits(gather(largest), plain));
}

TEST_F(Dispatch, ReducesAPartialOnceForAllReaders) {
  const auto x = put(exact_tensor({4}), "[tp=P(sum)]");
  world_->traffic().clear();
  at::exp(x);
  at::exp(x);
  EXPECT_EQ(world_->traffic().on("tp", CollectiveKind::kAllReduce).count, 1);
}

TEST_F(Dispatch, DifferentiatesLikeOneDevice) {
  const auto x = exact_tensor({4, 6}), w = exact_tensor({8, 6}, c10::kFloat, 5),
             v = exact_tensor({3, 8}, c10::kFloat, 7);
  auto run = [](at::Tensor a, at::Tensor b, at::Tensor c) {
    a.requires_grad_();
    b.requires_grad_();
    c.requires_grad_();
    at::linear(at::relu(at::linear(a, b)), c).sum().backward();
    return std::array{a.grad(), b.grad(), c.grad()};
  };
  const auto expected = run(x.clone(), w.clone(), v.clone());
  const auto sharded = run(put(x, "[dp=S(0)]"), put(w, "[tp=S(0)]"), put(v, "[tp=S(1)]"));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(gather(sharded[i]), expected[i])) << i;
}

TEST_F(Dispatch, NamesAnOpWithoutARule) {
  try {
    const auto x = put(exact_tensor({4}), "[]");
    at::binomial(x, x);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "binomial has no sharding rule; draws by rejection, from one generator one number after the other; "
                 "distribute() what one device draws");
  }
}

TEST_F(Dispatch, CachesPlansWhateverTheFloatingPointScalars) {
  const auto x = put(exact_tensor({4}), "[dp=S(0)]");
  at::mul(x, 1.5);
  const auto misses = world_->part<PlanCache>().misses;
  for (const double factor : {2.5, 3.5}) EXPECT_TRUE(same_bits(gather(at::mul(x, factor)), exact_tensor({4}) * factor));
  EXPECT_EQ(world_->part<PlanCache>().misses, misses);
}

TEST_F(Dispatch, MakesTensorsOnTheCurrentMesh) {
  const MeshScope scope(mesh_);
  const auto x = at::ones({2, 3}, at::TensorOptions().device(c10::kPrivateUse1));
  EXPECT_EQ(text(x), "[dp=R, tp=R]");
  EXPECT_TRUE(same_bits(x.cpu(), at::ones({2, 3})));
  EXPECT_EQ(x.sum().item<float>(), 6.0f);
}

}  // namespace
}  // namespace lockstep
