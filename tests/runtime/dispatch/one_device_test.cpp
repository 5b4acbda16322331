// Programs that once gave something else on a mesh than on one device: now they give one device's result, or an error.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/context/scopes.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/plan_cache.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep::testing {
namespace {

class OneDevice : public ::testing::Test {
 protected:
  Layout layout(const char* text) const { return Layout::parse(mesh_, text); }
  at::Tensor on_mesh(const at::Tensor& plain, const char* text) const { return distribute(plain, layout(text)); }

  void expect_equal(const at::Tensor& actual, const at::Tensor& expected) const {
    const auto what = difference(actual, expected, {}, true);
    EXPECT_EQ(what, "");
  }

  std::unique_ptr<World> world_ = simulated_world({{"tp", 2}});
  const Mesh& mesh_ = world_->mesh("tp=2");
};

// Sizes that do not fit and happen to fit a shard.

TEST_F(OneDevice, RefusesSizesThatOnlyFitAShard) {
  const auto x = on_mesh(exact_tensor({4, 3}), "[tp=S(0)]"), y = on_mesh(exact_tensor({2, 3}), "[tp=R]");
  EXPECT_ANY_THROW(x.add_(y));
  EXPECT_ANY_THROW(x.copy_(y));
  expect_equal(x, exact_tensor({4, 3}));
  const auto wide = on_mesh(exact_tensor({2, 8}), "[tp=S(1)]");
  EXPECT_ANY_THROW(at::matmul(wide, on_mesh(exact_tensor({4, 3}), "[tp=R]")));
  EXPECT_ANY_THROW(at::linear(wide, on_mesh(exact_tensor({3, 4}), "[tp=R]")));
}

TEST_F(OneDevice, RefusesTablesOfOtherPositions) {
  const auto x = on_mesh(exact_tensor({1, 2, 4, 6}), "[tp=S(2)]");
  const auto table = on_mesh(exact_tensor({8, 3}), "[tp=R]");
  EXPECT_THROW(mesh_ops::rotate_pairs(x, table, table), BadInput);
}

// Views.

TEST_F(OneDevice, WritesThroughAViewOfAView) {
  auto plain = exact_tensor({4, 3, 2});
  const auto x = on_mesh(plain, "[tp=S(0)]");
  x.select(0, 1).select(0, 2).fill_(5);
  plain.select(0, 1).select(0, 2).fill_(5);
  expect_equal(x, plain);
}

TEST_F(OneDevice, ReadsAViewOfADetachedViewAfterAWrite) {
  auto plain = exact_tensor({4, 3, 2});
  const auto x = on_mesh(plain, "[tp=S(0)]");
  const auto view = x.select(0, 1).t(), plain_view = plain.select(0, 1).t();
  x.mul_(2);
  plain.mul_(2);
  expect_equal(view, plain_view);
  expect_equal(view + 1, plain_view + 1);
}

TEST_F(OneDevice, TakesAFreshNarrowAfterAWriteInPlace) {
  auto plain = exact_tensor({4, 3});
  const auto x = on_mesh(plain, "[tp=S(0)]");
  x.add_(1);
  plain.add_(1);
  expect_equal(x.narrow(0, 1, 2) * 3, plain.narrow(0, 1, 2) * 3);
}

TEST_F(OneDevice, SeesWritesThroughAnyMemberOfAFamily) {
  auto plain = exact_tensor({4, 6});
  const auto x = on_mesh(plain, "[tp=S(0)]");
  const auto row = x.select(0, 3), plain_row = plain.select(0, 3);
  const auto column = x.select(1, 2), plain_column = plain.select(1, 2);
  row.add_(10), plain_row.add_(10);
  expect_equal(column, plain_column);
  column.mul_(3), plain_column.mul_(3);
  expect_equal(row, plain_row);
  row.view({2, 3}).select(1, 0).zero_(), plain_row.view({2, 3}).select(1, 0).zero_();
  expect_equal(x, plain);
  expect_equal(column, plain_column);
}

TEST_F(OneDevice, WritesThroughAViewInInferenceMode) {
  const c10::InferenceMode inference;
  auto plain = exact_tensor({4, 3});
  const auto x = on_mesh(plain, "[tp=S(0)]");
  const auto row = x.select(0, 1);
  x.mul_(2), plain.mul_(2);
  expect_equal(row, plain.select(0, 1));
  row.fill_(7), plain.select(0, 1).fill_(7);
  expect_equal(x, plain);
}

TEST_F(OneDevice, RefusesToGatherForAWriteUnderTheStrictPolicy) {
  World::Options options;
  options.policy.strict = true;
  const auto world = simulated_world({{"tp", 2}}, std::move(options));
  const auto& mesh = world->mesh("tp=2");
  const auto x = distribute(exact_tensor({4, 6}), Layout::parse(mesh, "[tp=S(0)]"));
  EXPECT_THROW(x.select(0, 1).fill_(5), BadInput);
}

// Plan keys.

TEST_F(OneDevice, ArangeOfOtherEndsHasOtherSizes) {
  const MeshScope scope(mesh_);
  const auto options = at::TensorOptions().device(c10::kPrivateUse1).dtype(c10::kFloat);
  for (const double end : {10.0, 20.0, 2.5}) expect_equal(at::arange(end, options), at::arange(end, c10::kFloat));
}

TEST_F(OneDevice, WrappedNumbersPromoteAsOnOneDevice) {
  const auto integers = on_mesh(at::arange(4), "[tp=S(0)]");
  const auto wrapped = at::scalar_tensor(2.5, c10::kDouble), number = at::scalar_tensor(2.5, c10::kDouble);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  EXPECT_EQ((integers * wrapped).scalar_type(), (at::arange(4) * wrapped).scalar_type());
  EXPECT_EQ((integers * number).scalar_type(), (at::arange(4) * number).scalar_type());
}

// Redistribution has bytes of its own on every mesh.

TEST_F(OneDevice, RedistributeGivesATensorOfItsOwn) {
  for (const char* from : {"[tp=R]", "[tp=S(0)]", "[tp=S(1)]"})
    for (const char* to : {"[tp=R]", "[tp=S(0)]", "[tp=S(1)]"}) {
      const auto x = on_mesh(exact_tensor({4, 6}), from);
      const auto y = redistribute(x, layout(to)), z = redistribute(x, layout(to));
      y.add_(1);
      x.mul_(2);
      expect_equal(x, exact_tensor({4, 6}) * 2);
      expect_equal(y, exact_tensor({4, 6}) + 1);
      expect_equal(z, exact_tensor({4, 6}));
      y.select(1, 2).fill_(9);
      EXPECT_EQ(gather(y).select(1, 2).max().item<float>(), 9.0f) << from << " to " << to;
    }
}

/// Ranks of one process that are given one tensor: a write must not happen once for each of them.
TEST_F(OneDevice, AWriteToAReducedSumHappensOnce) {
  const auto x = on_mesh(exact_tensor({4, 6}), "[tp=S(0)]");
  const auto sum = at::sum(x, {0});
  const auto twice = sum * sum;  // reduces it for both readers
  sum.add_(1);
  expect_equal(sum, exact_tensor({4, 6}).sum(0) + 1);
  expect_equal(twice, exact_tensor({4, 6}).sum(0).square());
}

/// Who else holds the sums must not decide whether they are reduced again: that would be communication.
TEST_F(OneDevice, AHeldSumIsReducedAsOftenAsOneThatNobodyHolds) {
  const auto x = on_mesh(exact_tensor({4, 6}), "[tp=S(0)]");
  const auto reductions = [&](bool holds) {
    world_->traffic().clear();
    const auto sum = at::sum(x, {0});
    const auto held = holds ? std::optional(sharded(sum).shards()) : std::nullopt;
    (void)(sum * sum), (void)at::exp(sum);
    return world_->traffic().total(CollectiveKind::kAllReduce).count;
  };
  EXPECT_EQ(reductions(true), reductions(false));
  EXPECT_EQ(reductions(true), 1);
}

TEST_F(OneDevice, AViewOfASumIsReducedOnceForAllReaders) {
  const auto x = on_mesh(exact_tensor({4, 6}), "[tp=S(0)]");
  const auto view = at::sum(x, {0}).view({2, 3});
  world_->traffic().clear();
  expect_equal(at::exp(view * 0) + at::sigmoid(view * 0), at::full({2, 3}, 1.5));
  (void)at::exp(view), (void)at::exp(view);
  EXPECT_LE(world_->traffic().total(CollectiveKind::kAllReduce).count, 3);
}

TEST_F(OneDevice, AReducedSumIsForgottenWhenItsFamilyIsWritten) {
  const auto x = on_mesh(exact_tensor({4, 6}), "[tp=S(0)]");
  const auto sum = at::sum(x, {0}), view = sum.view({2, 3});
  const auto plain = exact_tensor({4, 6}).sum(0).view({2, 3});
  expect_equal(at::sign(view), at::sign(plain));
  sum.mul_(-1);
  expect_equal(at::sign(view), -at::sign(plain));
}

TEST_F(OneDevice, RedistributeGivesTheSameStridesWhetherItMovesOrNot) {
  const auto x = on_mesh(exact_tensor({4, 6}), "[tp=S(0)]").t();
  for (const char* to : {"[tp=R]", "[tp=S(0)]", "[tp=S(1)]"})
    expect_equal(redistribute(x, layout(to)).view({-1}), exact_tensor({4, 6}).t().reshape({-1}));
}

// Labels.

TEST_F(OneDevice, RefusesLabelsThatAreNoClasses) {
  const auto logits = on_mesh(exact_tensor({3, 4}), "[tp=S(1)]");
  for (const int64_t wrong : {4, -1, -7, 1000}) {
    const auto labels = on_mesh(at::full({3}, wrong, c10::kLong), "[tp=R]");
    EXPECT_THROW(at::cross_entropy_loss(logits, labels), BadInput) << wrong;
  }
  const auto ignored = on_mesh(at::full({3}, -1, c10::kLong), "[tp=R]");
  expect_equal(at::cross_entropy_loss(logits, ignored, {}, at::Reduction::Sum, -1), at::zeros({}));
}

TEST_F(OneDevice, ScalesEmbeddingGradientsByHowOftenATokenOccursAnywhere) {
  const auto tokens = at::arange(6).remainder(2), gradient = exact_tensor({6, 3});
  const auto expected = at::embedding_dense_backward(gradient, tokens, 4, -1, true);
  for (const char* text : {"[tp=R]", "[tp=S(0)]"})
    expect_equal(at::embedding_dense_backward(on_mesh(gradient, text), on_mesh(tokens, text), 4, -1, true), expected);
}

// Names and counters.

TEST_F(OneDevice, GatheringHasANameOfItsOwn) {
  struct Names : Observer {
    void before_collective(const CollectiveEvent& event) override { ops.push_back(event.id.op); }
    std::vector<std::string> ops;
  } names;
  const auto x = on_mesh(exact_tensor({4}), "[tp=S(0)]");
  const auto y = x + 1;
  const ObserverScope scope(world_->observers(), names);
  (void)(y * 2);
  (void)gather(y);
  (void)at::sum(y).item();
  EXPECT_EQ(names.ops, (std::vector<std::string>{"gather", "gather"}));
}

TEST_F(OneDevice, DropoutDrawsTheSameOnAndBesideASubmesh) {
  const auto masks = [](bool elsewhere_first) {
    const auto world = simulated_world({{"pp", 2}, {"tp", 2}});
    const auto& mesh = world->mesh("pp=2,tp=2");
    const RandomScope random(7);
    RunContext::current().begin_microbatch(1, 0);
    const ModuleScope module("layer");
    const auto whole = distribute(at::ones({64}), Layout::replicated(mesh));
    if (elsewhere_first)
      at::native_dropout(distribute(at::ones({8}), Layout::replicated(mesh.submesh("pp", 1))), 0.5, true);
    return gather(std::get<1>(at::native_dropout(whole, 0.5, true)));
  };
  EXPECT_FALSE(same_bits(masks(true), masks(false))) << "the second draw of a module is another than the first";
  World::Options options;
  options.rank_count = 4;
  options.meta = true;
  options.local_ranks = {0, 1};  // nobody of pp=1
  World part(options);
  const RandomScope random(7);
  RunContext::current().begin_microbatch(1, 0);
  const ModuleScope module("layer");
  const auto& submesh = part.mesh("pp=2,tp=2").submesh("pp", 1);
  at::native_dropout(make_sharded(submesh.specs().intern(Layout::replicated(submesh), {8}, c10::kFloat), Shards{}), 0.5,
                     true);
  const auto second = RunContext::current().next_random_stream();
  RunContext::current().begin_microbatch(1, 0);
  EXPECT_NE(second, RunContext::current().next_random_stream())
      << "a rank without a part of the tensor counts the draw, too";
}

// Partials.

TEST_F(OneDevice, DistributesToAnOrderedSumWithoutMultiplying) {
  World::Options options;
  options.numerics = lockstep::Numerics::kCanonical;
  const auto world = simulated_world({{"tp", 2}}, std::move(options));
  const auto& mesh = world->mesh("tp=2");
  const auto value = exact_tensor({5});
  for (const char* text : {"[tp=P(sum:8/1)]", "[tp=P(sum:6/1)]", "[tp=P(sum:1024/512)]"})
    EXPECT_TRUE(same_bits(gather(distribute(value, Layout::parse(mesh, text))), value)) << text;
  EXPECT_THROW(distribute(value, Layout::parse(mesh, "[tp=P(sum:1500/512)]")), BadInput) << "a cut inside a leaf";
}

TEST_F(OneDevice, ANumberMinusASumIsANumber) {
  const auto sum = at::sum(on_mesh(exact_tensor({4, 6}), "[tp=S(0)]"), {0});
  ASSERT_TRUE(layout_of(sum).any_partial());
  expect_equal(1.0 - sum, 1.0 - exact_tensor({4, 6}).sum(0));
}

TEST_F(OneDevice, AskingForSizesMovesNothing) {
  const auto x = on_mesh(exact_tensor({4, 6}), "[tp=S(0)]");
  const auto sum = at::sum(x, {0});
  world_->traffic().clear();
  expect_equal(x.new_zeros({3}), at::zeros({3}));
  expect_equal(at::zeros_like(sum), at::zeros({6}));
  expect_equal(at::ones_like(x), at::ones({4, 6}));
  const auto view = x.select(1, 0).view({1, 4});  // [4] -> [1, 4]
  EXPECT_EQ(layout_of(view).text(), "[tp=S(1)]");
  EXPECT_EQ(world_->traffic().bytes(), 0);
}

TEST_F(OneDevice, AFailedCompletionFailsAgain) {
  const auto* spec = mesh_.specs().intern(layout("[tp=R]"), {2}, c10::kFloat);
  const auto set = std::make_shared<ShardSet>([]() -> Shards { fail<TransportError>("a peer is gone"); }, false);
  const auto tensor = make_sharded(spec, set);
  EXPECT_THROW(gather(tensor), TransportError);
  EXPECT_THROW(gather(tensor), TransportError) << "not an empty set";
}

}  // namespace
}  // namespace lockstep::testing
