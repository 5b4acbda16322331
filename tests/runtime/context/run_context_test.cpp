#include "runtime/context/run_context.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/context/scopes.h"

namespace lockstep {
namespace {

TEST(RandomStreams, StartAnewWithEachMicrobatchAndModuleCall) {
  RunContext context;
  const RunContext::Use use(context);
  context.begin_microbatch(1, 0);
  const auto top = context.next_random_stream();
  EXPECT_NE(context.next_random_stream(), top);
  context.begin_microbatch(1, 1);
  EXPECT_EQ(context.next_random_stream(), top);
  const auto in_module = [&] {
    const ModuleScope scope("layers.0");
    return context.next_random_stream();
  };
  const auto first = in_module();
  EXPECT_NE(first, top);
  EXPECT_EQ(in_module(), first);  // recomputation
  context.begin_microbatch(2, 0);
  EXPECT_NE(in_module(), first);
}

TEST(OpIds, CountOccurrencesPerPlace) {
  RunContext context;
  const RunContext::Use use(context);
  context.begin_microbatch(4, 2);
  const PhaseScope phase(Phase::kForward);
  EXPECT_EQ(context.next_op_id("mm").text(), "step 4, microbatch 2, forward, mm #0");
  EXPECT_EQ(context.next_op_id("mm").text(), "step 4, microbatch 2, forward, mm #1");
  const ModuleScope scope("head");
  EXPECT_EQ(context.next_op_id("mm").text(), "step 4, microbatch 2, forward, head, mm #0");
}

/// Where the program is, as an op sees it.
std::string here() {
  auto& context = RunContext::current();
  return context.next_op_id("op").text() + ", rows from " + std::to_string(context.rows().first) + ", seed " +
         std::to_string(context.seed());
}

using torch::autograd::variable_list;

/// Its backward says where it is; `inside` runs there, too.
struct Probe : torch::autograd::Function<Probe> {
  static inline std::vector<std::string> seen = {};
  static inline std::function<void()> inside = {};
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static variable_list backward(torch::autograd::AutogradContext*, variable_list gradients) {
    seen.push_back(here());
    if (inside) inside();
    return gradients;
  }
};

class Contexts : public ::testing::Test {
 protected:
  void SetUp() override { Probe::seen.clear(), Probe::inside = {}; }

  /// A microbatch through one module, in a batch that begins at row 10 * microbatch.
  at::Tensor forward(RunContext& context, int64_t step, int64_t microbatch, const char* module = "block") {
    const RunContext::Use use(context);
    const PhaseScope phase(Phase::kForward);
    const RandomScope random(static_cast<uint64_t>(70 + microbatch));
    context.begin_microbatch(step, microbatch);
    const BatchScope batch({.first = 10 * microbatch, .count = 2});
    const ModuleScope scope(module);
    return Probe::apply(x_);
  }

  void backward(RunContext& context, const at::Tensor& y) {
    const RunContext::Use use(context);
    torch::autograd::backward({y}, {at::ones_like(y)});
  }

  at::Tensor x_ = at::ones({2}).requires_grad_();
  RunContext context_;
};

TEST_F(Contexts, ABackwardIsWhereItsForwardWas) {
  const auto first = forward(context_, 3, 0, "a"), second = forward(context_, 3, 1, "b");
  backward(context_, first);
  backward(context_, second);
  EXPECT_EQ(Probe::seen, (std::vector<std::string>{"step 3, microbatch 0, backward, a, op #0, rows from 0, seed 70",
                                                   "step 3, microbatch 1, backward, b, op #0, rows from 10, seed 71"}));
}

TEST_F(Contexts, AMicrobatchThatBeginsAgainForgetsItself) {
  forward(context_, 3, 0, "a");
  const auto again = forward(context_, 3, 0, "b");
  backward(context_, again);
  EXPECT_EQ(Probe::seen.at(0), "step 3, microbatch 0, backward, b, op #0, rows from 0, seed 70");
}

TEST_F(Contexts, OfTwoRunsDoNotDisturbEachOther) {
  RunContext other;
  const auto mine = forward(context_, 3, 0, "mine"), theirs = forward(other, 8, 1, "theirs");
  const auto later = forward(context_, 3, 1, "later");
  backward(other, theirs);
  backward(context_, later);
  backward(context_, mine);
  EXPECT_EQ(Probe::seen,
            (std::vector<std::string>{"step 8, microbatch 1, backward, theirs, op #0, rows from 10, seed 71",
                                      "step 3, microbatch 1, backward, later, op #0, rows from 10, seed 71",
                                      "step 3, microbatch 0, backward, mine, op #0, rows from 0, seed 70"}));
}

TEST_F(Contexts, WhatIsRecomputedHasItsNodesMicrobatchAndItsOwnScopes) {
  std::vector<std::string> recomputed;
  const auto first = forward(context_, 3, 0), second = forward(context_, 3, 1);
  Probe::inside = [&] {
    const PhaseScope phase(Phase::kRecompute);
    const ModuleScope scope("inner");
    recomputed.push_back(here());
    const BatchScope batch({.first = 5, .count = 1});
    recomputed.push_back(here());
  };
  backward(context_, first);
  EXPECT_EQ(recomputed,
            (std::vector<std::string>{"step 3, microbatch 0, recompute, inner, op #0, rows from 0, seed 70",
                                      "step 3, microbatch 0, recompute, inner, op #1, rows from 5, seed 70"}));
}

TEST_F(Contexts, AProgramWithoutStepsForgetsTheOldestAndSaysSo) {
  const RunContext::Use use(context_);
  const RandomScope random(70);
  const auto in_module = [&](const char* module) {
    const ModuleScope scope(module);
    return Probe::apply(x_);
  };
  const auto oldest = in_module("oldest");
  for (int scope = 0; scope < 140'000; ++scope) in_module("between");
  const auto kept = in_module("kept");
  for (int scope = 0; scope < 125'000; ++scope) in_module("between");
  backward(context_, kept);
  EXPECT_THAT(Probe::seen.at(0), ::testing::HasSubstr("backward, kept, op #0"));
  try {
    backward(context_, oldest);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "the backward of an op came 131072 scopes or more after its forward, and what was open then is "
                 "forgotten: call begin_microbatch() at the start of each step");
  }
}

TEST_F(Contexts, OutsideOfScopesSayWhatIsMissing) {
  try {
    context_.seed();
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "a random op ran on the mesh outside of a RandomScope, which holds the seed");
  }
  try {
    context_.mesh();
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "a tensor was made on the mesh device outside of a MeshScope, which says on what mesh; open one");
  }
}

}  // namespace
}  // namespace lockstep
