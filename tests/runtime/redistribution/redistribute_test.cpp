#include "runtime/redistribution/redistribute.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/transport/simulated.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::same_bits;
using testing::scatter;  // Partials whose values differ on every rank

RC_GTEST_PROP(Redistribute, EndsInTheTargetAndKeepsTheValue, ()) {
  const auto axes = *testing::mesh_axes(3, 12);
  const auto shape = *testing::sizes(3, 7);
  const auto dtype = *rc::gen::element(c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kLong);
  const auto world = testing::simulated_world(axes);
  const auto& mesh = world->mesh(axes);
  const int dims = static_cast<int>(shape.size());
  const auto source = testing::layout(mesh, dims, true), target = testing::layout(mesh, dims, true);
  RC_LOG() << mesh.text() << " " << source.text() << " -> " << target.text();
  const auto global = exact_tensor(shape, dtype);
  const auto moved = redistribute(scatter(global, source), target);
  RC_ASSERT(layout_of(moved) == without_idle_units(target, shape));
  RC_ASSERT(same_bits(gather(moved), global));
}

RC_GTEST_PROP(Redistribute, GivesTheSameBitsOverMessages, ()) {
  const auto axes = *testing::mesh_axes(3, 8);
  const auto shape = *testing::sizes(2, 6);
  World::Options options;
  options.transport = std::make_shared<SimulatedTransport>(*rc::gen::arbitrary<uint64_t>());
  options.one_round_bytes = *rc::gen::element<size_t>(0, 1 << 16);
  const auto world = testing::simulated_world(axes, options);
  const auto& mesh = world->mesh(axes);
  const int dims = static_cast<int>(shape.size());
  const auto source = testing::layout(mesh, dims, true), target = testing::layout(mesh, dims, true);
  RC_LOG() << mesh.text() << " " << source.text() << " -> " << target.text();
  const auto global = exact_tensor(shape);
  const auto moved = redistribute(scatter(global, source), target);
  RC_LOG() << gather(moved) << global;
  RC_ASSERT(same_bits(gather(moved), global));
}

TEST(Redistribute, MovesPartialToShardWithOneReduceScatter) {
  const auto world = testing::simulated_world({{"tp", 4}});
  const auto& mesh = world->mesh("tp=4");
  const auto x = distribute(exact_tensor({8, 3}), Layout::parse(mesh, "[tp=P(sum)]"));
  world->traffic().clear();
  redistribute(x, Layout::parse(mesh, "[tp=S(0)]"));
  EXPECT_EQ(world->traffic().on("tp", CollectiveKind::kReduceScatter).count, 1);
  EXPECT_EQ(world->traffic().bytes(), 8 * 3 * 4 * 3 / 4);
}

TEST(Redistribute, GathersTheAxisThatCutsLastWithoutTheOthers) {
  const auto world = testing::simulated_world({{"dp_shard", 2}, {"tp", 2}});
  const auto& mesh = world->mesh("dp_shard=2,tp=2");
  const auto weight = distribute(exact_tensor({8, 3}), Layout::parse(mesh, "[dp_shard=S(0)@1, tp=S(0)@0]"));
  world->traffic().clear();
  redistribute(weight, Layout::parse(mesh, "[tp=S(0)]"));
  EXPECT_EQ(world->traffic().on("dp_shard", CollectiveKind::kAllGather).count, 1);
  EXPECT_EQ(world->traffic().on("tp", CollectiveKind::kAllGather).count, 0);
}

TEST(Redistribute, SendsTheGradientBackToTheSourceLayout) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  auto x = distribute(exact_tensor({4}), Layout::parse(mesh, "[tp=S(0)]")).requires_grad_();
  const auto whole = redistribute(x, Layout::replicated(mesh));
  (whole * whole).sum().backward();
  EXPECT_EQ(layout_of(x.grad()).text(), "[tp=S(0)]");
  EXPECT_TRUE(same_bits(gather(x.grad()), exact_tensor({4}) * 2));
}

TEST(Redistribute, DividesAnAverageOnce) {
  const auto world = testing::simulated_world({{"dp", 3}});
  const auto& mesh = world->mesh("dp=3");
  Shards shards{at::full({2}, 1.0f), at::full({2}, 2.0f), at::full({2}, 6.0f)};
  auto x = from_shards(shards, Layout::parse(mesh, "[dp=P(avg)]"), {2}, c10::kFloat).requires_grad_();
  const auto whole = redistribute(x, Layout::replicated(mesh));
  EXPECT_TRUE(same_bits(gather(whole), at::full({2}, 3.0f)));
  whole.sum().backward();
  EXPECT_TRUE(same_bits(gather(x.grad()), at::ones({2})));
}

TEST(Redistribute, RefusesReductionsThatADtypeHasNot) {
  const auto world = testing::simulated_world({{"dp", 2}});
  const auto& mesh = world->mesh("dp=2");
  const auto refusal = [&](const char* layout, c10::ScalarType dtype) {
    const auto x = distribute(at::ones({3}, dtype), Layout::replicated(mesh));
    return testing::message_of<BadInput>([&] { gather(redistribute(x, Layout::parse(mesh, layout))); });
  };
  EXPECT_EQ(refusal("[dp=P(avg)]", c10::kLong), "an average needs a floating dtype, got Long");
  for (const char* order : {"[dp=P(max)]", "[dp=P(min)]"})
    EXPECT_EQ(refusal(order, c10::kComplexFloat),
              fmt::format("layout {}: ComplexFloat has no order; a Partial of it is a sum or a product", order));
  EXPECT_EQ(refusal("[dp=P(sum)]", c10::kComplexFloat), "no such error");
  EXPECT_EQ(refusal("[dp=P(max)]", c10::kBool), "no such error");
}

TEST(Redistribute, LaterMovesOnFirstUse) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  auto x = distribute(exact_tensor({4}), Layout::parse(mesh, "[tp=S(0)]"));
  const auto first = redistribute_later(x, Layout::replicated(mesh)),
             second = redistribute_later(x, Layout::replicated(mesh));
  EXPECT_EQ(world->traffic().total(CollectiveKind::kAllGather).count, 0);
  EXPECT_TRUE(same_bits(gather(second + 1), exact_tensor({4}) + 1));
  EXPECT_EQ(world->traffic().total(CollectiveKind::kAllGather).count, 1);
  x.add_(1);
  EXPECT_THROW(first.clone(), InternalError);
}

RC_GTEST_PROP(Redistribute, MovesABucketAsEachAlone, ()) {
  const auto axes = *testing::mesh_axes(3, 12);
  const auto world = testing::simulated_world(axes);
  const auto& mesh = world->mesh(axes);
  std::vector<at::Tensor> tensors;
  std::vector<Layout> targets;
  for (auto count = *rc::gen::inRange(1, 5); count > 0; --count) {
    const auto source = testing::layout(mesh, 2, true);
    targets.push_back(testing::layout(mesh, 2, true));
    RC_LOG() << source.text() << " -> " << targets.back().text() << "\n";
    tensors.push_back(scatter(exact_tensor({5, 3 + count}), source));
  }
  const auto moved = redistribute_bucket(tensors, targets);
  for (size_t t = 0; t < tensors.size(); ++t) {
    RC_ASSERT(layout_of(moved[t]) == without_idle_units(targets[t], tensors[t].sizes()));
    RC_ASSERT(same_bits(gather(moved[t]), gather(tensors[t])));
  }
}

TEST(Redistribute, RefusesTheGradientOfAMaximum) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  auto x = distribute(exact_tensor({4}), Layout::parse(mesh, "[tp=P(max)]")).requires_grad_();
  const auto whole = redistribute(x, Layout::replicated(mesh));
  EXPECT_THROW(whole.sum().backward(), BadInput);
}

}  // namespace
}  // namespace lockstep
