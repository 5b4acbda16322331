// Mode ops under native numerics: bounds are derived for real numbers. Of complex ones what computes is left out and
// counted; what moves them, and sums of ranks, are compared.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "consistency/ops/op_check.h"
#include "fuzz/cases/tensors.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep::testing {
namespace {

at::Tensor random_complex(c10::IntArrayRef sizes) {
  at::manual_seed(5);
  return at::complex(at::randn(sizes), at::randn(sizes));
}

class ComplexOps : public ::testing::Test {
 protected:
  at::Tensor put(const at::Tensor& plain, const char* layout) const {
    return distribute(plain, Layout::parse(mesh_, layout));
  }

  std::unique_ptr<World> world_ = simulated_world({{"tp", 3}}, {.numerics = lockstep::Numerics::kNative});
  const Mesh& mesh_ = world_->mesh("tp=3");
  OpCheck op_check_{*world_, 1};
};

TEST_F(ComplexOps, WhatComputesIsLeftOutAndCounted) {
  const auto x = put(random_complex({31, 7}), "[tp=S(0)]"), whole = put(random_complex({7, 5}), "[tp=R]");
  const auto real = put(at::rand({31, 7}), "[tp=S(0)]");
  {
    const ObserverScope watched(world_->observers(), op_check_);
    static_cast<void>(at::mul(x, x));
    static_cast<void>(at::mm(x, whole));
    static_cast<void>(at::abs(x));
    static_cast<void>(at::sgn(x));
    static_cast<void>(at::mul(real, c10::complex<double>(0.3, 0.7)));
  }
  EXPECT_EQ(op_check_.counts().text(), "0 of 5 ops (5 have no bound) and 0 of 0 moves");
  EXPECT_FALSE(op_check_.blame());
}

/// A bound for real sums says nothing of these: ranks add them up in another order than one device.
TEST_F(ComplexOps, PartsOfASumThatGoOnAreLeftOutAndCounted) {
  const auto sum = put(random_complex({64, 7}), "[tp=S(0)]").sum(0);
  ASSERT_TRUE(spec_of(sum).any_partial);
  {
    const ObserverScope watched(world_->observers(), op_check_);
    static_cast<void>(sum.neg());
  }
  EXPECT_EQ(op_check_.counts().text(), "0 of 1 ops (1 have no bound) and 0 of 0 moves");
}

/// Changes the imaginary part of one element that an op, or a move, gave the last rank.
class ImaginarySpoiler final : public Observer {
 public:
  explicit ImaginarySpoiler(double amount) : amount_(amount) {}

  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override {
    for (const auto& result : op_results(event, results))
      spoil(sharded(result.tensor).shards()->local_tensors().back());
  }
  void after_move(const MoveEvent& event) override { spoil(event.shards_after.back()); }

 private:
  void spoil(const at::Tensor& shard) const {
    const PlainTensors guard;
    at::view_as_real(shard.select(0, 0).select(0, 0)).select(0, 1).add_(amount_);
  }

  double amount_;
};

TEST_F(ComplexOps, WhatMovesThemIsCompared) {
  const auto x = put(random_complex({31, 7}), "[tp=S(0)]");
  for (const bool is_spoiled : {false, true}) {
    OpCheck op_check(*world_, 1);
    ImaginarySpoiler spoiler(1e-5);
    std::optional<ObserverScope> spoiled;
    if (is_spoiled) spoiled.emplace(world_->observers(), spoiler);
    const ObserverScope watched(world_->observers(), op_check);
    static_cast<void>(x.clone());
    EXPECT_EQ(op_check.counts().text(), "1 of 1 ops and 0 of 0 moves");
    EXPECT_EQ(op_check.blame().has_value(), is_spoiled);
  }
}

/// What is far below a rounding's size is none; what is a hundred times above it is seen, in one part of one number.
TEST_F(ComplexOps, SumsOfRanksAreComparedWithinTheirBound) {
  for (const double amount : {1e-6, 1e-3}) {
    const auto sum = put(random_complex({64, 7, 5}), "[tp=S(0)]").sum(0);
    OpCheck op_check(*world_, 1);
    ImaginarySpoiler spoiler(amount);
    const ObserverScope spoiled(world_->observers(), spoiler), watched(world_->observers(), op_check);
    static_cast<void>(redistribute(sum, Layout::parse(mesh_, "[tp=R]")));
    EXPECT_EQ(op_check.counts().compared_moves, 1);
    EXPECT_GT(op_check.counts().over_bound, 0);
    EXPECT_EQ(op_check.counts().over_bound > 1, amount > 1e-4);
    EXPECT_EQ(op_check.blame().has_value(), amount > 1e-4);
  }
}

}  // namespace
}  // namespace lockstep::testing
