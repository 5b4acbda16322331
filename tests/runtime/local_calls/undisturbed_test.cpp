// What is under way when a product and a collective are taken apart, and what else runs meanwhile: whoever writes what
// it is made of, or reads it otherwise, comes after it. Ranks are threads here.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/local_calls/decomposition.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/cases/rank_threads.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::exact_tensor;
using testing::run_ranks;
using testing::same_bits;
using testing::StreamKind;

using Program = std::function<void(World&, const Mesh&, const Tensor& x, const Tensor& weight)>;

constexpr int64_t kRows = 6, kOut = 5, kWidth = 256;
Tensor input() { return exact_tensor({kRows, kWidth}); }
Tensor matrix() { return exact_tensor({kOut, kWidth}); }
Tensor product() { return at::linear(input(), matrix()); }

/// x [6, 256] in rows, a weight [5, 256] in columns, which are summed; three times.
void expect_no_problems(const Program& program, Numerics numerics = Numerics::kCanonical) {
  const auto problems = run_ranks(
      2, StreamKind::kMemory,
      [&](World& world) {
        world.part<Decomposition>().set_axis("tp");
        const auto& mesh = world.mesh("tp=2");
        for (int round = 0; round < 3; ++round)
          program(world, mesh, distribute(input(), Layout::parse(mesh, "[tp=S(0)]")),
                  distribute(matrix(), Layout::parse(mesh, "[tp=S(1)]")));
      },
      numerics);
  EXPECT_THAT(problems, ::testing::Each(""));
}

void expect_values(const Tensor& tensor, const Tensor& expected, const char* when) {
  LOCKSTEP_CHECK(same_bits(gather(tensor), expected), "{}", when);
}

bool is_pending(const Tensor& tensor) { return sharded(tensor).shards()->is_pending(); }

/// Rows under way: whoever writes their source, or reads them otherwise, comes after they have arrived.
TEST(DecompositionUndisturbed, OfAGatherIsNotDisturbedByWhatElseRuns) {
  expect_no_problems([](World& world, const Mesh& mesh, const Tensor& x, const Tensor&) {
    const auto weight = distribute(matrix(), Layout::parse(mesh, "[tp=S(0)]"));
    const auto whole = Layout::replicated(mesh);
    const auto before = world.part<Decomposition>().counts().gathers;
    const auto rows = redistribute(x, whole);
    LOCKSTEP_CHECK(is_pending(rows));
    x.mul_(100);
    LOCKSTEP_CHECK(!is_pending(rows));
    expect_values(at::linear(rows, weight), product(), "written meanwhile");
    expect_values(rows, input(), "after the product");
    const auto again = redistribute(x, whole), other = redistribute(x, whole);
    expect_values(other, gather(again), "two at once");
    const auto third = redistribute(x, whole), same = redistribute(third, whole);
    same.mul_(3);
    expect_values(third, input().mul(100), "its own bytes");
    { const auto unread = redistribute(x, whole); }
    expect_values(x, input().mul(100), "unread");
    const auto square = redistribute(x.narrow(1, 0, kRows), whole);
    expect_values(at::matmul(square, square), gather(square).matmul(gather(square)), "both factors");
    LOCKSTEP_CHECK_EQ(world.part<Decomposition>().counts().gathers, before);
  });
}

/// A lazy copy has the bytes of what is written.
TEST(DecompositionUndisturbed, OfAGatherIsNotDisturbedByAWriteToWhatItWasCopiedFrom) {
  expect_no_problems([](World&, const Mesh& mesh, const Tensor& x, const Tensor&) {
    const auto copy = redistribute(x, layout_of(x)), rows = redistribute(copy, Layout::replicated(mesh));
    LOCKSTEP_CHECK(is_pending(rows));
    x.mul_(100);
    LOCKSTEP_CHECK(!is_pending(rows));
    expect_values(rows, input(), "the source of the copy was written");
  });
}

/// More bytes than a connection takes at once: what is sent is read long after it was posted.
TEST(DecompositionUndisturbed, OfALargeGatherIsNotDisturbedByAWriteBehindIt) {
  const auto large = at::arange(int64_t{1} << 22).to(c10::kFloat).view({1 << 13, 1 << 9});
  const auto problems = run_ranks(2, StreamKind::kSocket, [&](World& world) {
    world.part<Decomposition>().set_axis("tp");
    const auto& mesh = world.mesh("tp=2");
    const auto weight = distribute(at::eye(1 << 9), Layout::parse(mesh, "[tp=S(0)]"));
    for (int round = 0; round < 3; ++round) {
      const auto x = distribute(large, Layout::parse(mesh, "[tp=S(0)]"));
      const auto y = at::linear(redistribute(x, Layout::replicated(mesh)), weight);
      x.zero_();
      expect_values(y, large, "written behind the product");
      const auto other = distribute(large, layout_of(x));
      { const auto unread = redistribute(other, Layout::replicated(mesh)); }
      other.zero_();
      expect_values(other, at::zeros_like(large), "written behind what nobody read");
    }
    LOCKSTEP_CHECK_EQ(world.part<Decomposition>().counts().gathers, 2);
  });
  EXPECT_THAT(problems, ::testing::Each(""));
}

/// x cut as the weight is: a product with unfinished sums.
Tensor in_columns(const Tensor& x, const Mesh& mesh) { return redistribute(x, Layout::parse(mesh, "[tp=S(1)]")); }

/// A product that is put off: whoever writes a factor, or reads the sums otherwise, comes after it is computed.
TEST(DecompositionUndisturbed, OfAProductIsNotDisturbedByWhatElseRuns) {
  expect_no_problems([](World& world, const Mesh& mesh, const Tensor& rows, const Tensor& weight) {
    const auto cut = Layout::parse(mesh, "[tp=S(0)]");
    const auto x = in_columns(rows, mesh);
    const auto before = world.part<Decomposition>().counts().scatters;
    const auto y = at::linear(x, weight);
    x.mul_(100), weight.zero_();
    LOCKSTEP_CHECK(!is_pending(y));
    expect_values(redistribute(y, cut), product(), "factors written");
    LOCKSTEP_CHECK_EQ(world.part<Decomposition>().counts().scatters, before);
  });
}

/// Native sums are written while they are unfinished.
TEST(DecompositionUndisturbed, OfAProductThatWasWrittenIsNotComputedAgain) {
  const auto program = [](World&, const Mesh& mesh, const Tensor& rows, const Tensor& weight) {
    const auto cut = Layout::parse(mesh, "[tp=S(0)]");
    const auto y = at::linear(in_columns(rows, mesh), weight);
    y.mul_(2);
    expect_values(redistribute(y, cut), product().mul(2), "the product written");
    const auto z = at::linear(in_columns(rows, mesh), weight);
    z.view({-1}).mul_(2);
    expect_values(redistribute(z, cut), product().mul(2), "a view of it written");
  };
  expect_no_problems(program, Numerics::kNative);
  expect_no_problems(program);
}

/// What was scattered is still there as a whole, though its factors were written since.
TEST(DecompositionUndisturbed, OfAProductCanBeReadAgain) {
  expect_no_problems([](World& world, const Mesh& mesh, const Tensor& rows, const Tensor& weight) {
    const auto cut = Layout::parse(mesh, "[tp=S(0)]");
    auto& decomposition = world.part<Decomposition>();
    const auto x = in_columns(rows, mesh);
    const auto before = decomposition.counts().scatters;
    const auto y = at::linear(x, weight);
    const bool was_pending = is_pending(y);
    const auto scattered = redistribute(y, cut);
    LOCKSTEP_CHECK_EQ(decomposition.counts().scatters, before + (was_pending ? 1 : 0));
    LOCKSTEP_CHECK(was_pending || before == 0, "the first alone is whole");
    x.mul_(100), weight.zero_();
    expect_values(scattered, product(), "scattered");
    expect_values(y, product(), "the product itself");
    expect_values(redistribute(y, cut), product(), "scattered again");
  });
}

/// A factor written through a view that no view of its shards expresses.
TEST(DecompositionUndisturbed, OfAProductIsNotDisturbedByADetachedView) {
  expect_no_problems([](World&, const Mesh& mesh, const Tensor& rows, const Tensor& weight) {
    const auto x = in_columns(rows, mesh);
    const auto view = x.view({kRows * kWidth});
    const auto y = at::linear(x, weight);
    view.mul_(2);
    LOCKSTEP_CHECK(!is_pending(y));
    expect_values(redistribute(y, Layout::parse(mesh, "[tp=S(0)]")), product(), "the view was written");
    expect_values(x, input().mul(2), "x");
  });
}

/// A product that cannot be computed: the ranks go on with what comes next.
void linear_that_fails(const LocalCall& call, torch::jit::Stack& stack) {
  if (call.plan.results[0]->any_partial && call.tensor(stack, "input").size(0) < kRows) fail<BadInput>("no memory");
  built_in_rules(Numerics::kCanonical)->find("linear")->local(call, stack);
}

TEST(DecompositionUndisturbed, OfAProductThatFailsEndsItsCollective) {
  auto rule = *built_in_rules(Numerics::kCanonical)->find("linear");
  rule.local = linear_that_fails;
  const auto problems = run_ranks(
      2, StreamKind::kMemory,
      [](World& world) {
        world.part<Decomposition>().set_axis("tp");
        const auto& mesh = world.mesh("tp=2");
        const auto cut = Layout::parse(mesh, "[tp=S(0)]");
        const auto x = distribute(input(), Layout::parse(mesh, "[tp=S(1)]"));
        const auto weight = distribute(matrix(), Layout::parse(mesh, "[tp=S(1)]"));
        redistribute(at::linear(x, weight), cut);
        const auto y = at::linear(x, weight);
        for (int time = 0; time < 2; ++time)
          EXPECT_EQ(testing::message_of<BadInput>([&] { redistribute(y, cut); }), "no memory");
        expect_values(redistribute(x, Layout::replicated(mesh)), input(), "what comes next");
      },
      Numerics::kCanonical, built_in_rules(Numerics::kCanonical)->with(rule));
  EXPECT_THAT(problems, ::testing::Each(""));
}

}  // namespace
}  // namespace lockstep
