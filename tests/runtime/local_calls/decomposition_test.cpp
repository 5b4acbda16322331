// Products and the collectives beside them, taken apart between ranks that are threads here: the bits of products that
// wait, whatever comes in between.
#include "runtime/local_calls/decomposition.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/cases/rank_threads.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::run_ranks;
using testing::same_bits;
using testing::StreamKind;
using Counts = Decomposition::Counts;

/// Between the two linears, cut between leaves of its sums, so that these stay unfinished.
constexpr int64_t kWidth = 256;

struct Sizes {
  int ranks;
  std::vector<int64_t> rows;  ///< before the last dimension; cut along `dim`
  int dim;
  int64_t in;
};

/// Not exact in float32: another order of a sum has other bits.
Tensor values(c10::IntArrayRef sizes, double step, c10::ScalarType dtype) {
  return at::arange(c10::multiply_integers(sizes), at::kDouble).mul(step).sin().reshape(sizes).to(dtype);
}

/// A column-parallel linear and a row-parallel one behind it, rows cut before and after, and the gradients of both.
std::vector<Tensor> two_linears(const Mesh& mesh, const Sizes& sizes, c10::ScalarType dtype) {
  auto in = sizes.rows, between = sizes.rows;
  in.push_back(sizes.in);
  const auto layout = [&](const std::string& text) { return Layout::parse(mesh, fmt::format("[tp={}]", text)); };
  const auto cut = layout(fmt::format("S({})", sizes.dim)), whole = layout("R");
  const auto leaf = SumTree::over_elements(kWidth).leaf;
  const auto x = distribute(values(in, 0.7, dtype), cut).requires_grad_();
  const auto first =
      distribute(values({kWidth, sizes.in}, 0.3, dtype), layout(fmt::format("S(0:{})", leaf))).requires_grad_();
  const auto second =
      distribute(values({sizes.in, kWidth}, 0.9, dtype), layout(fmt::format("S(1:{})", leaf))).requires_grad_();
  const auto hidden = at::linear(redistribute(x, whole), first);
  const auto y = redistribute(at::linear(at::relu(hidden), second), cut);
  y.backward(distribute(values(in, 1.1, dtype), cut));
  std::vector<Tensor> results;
  for (const auto& each : {y, x.grad(), first.grad(), second.grad()}) results.push_back(gather(each));
  return results;
}

/// The same of one process that waits, three times: the first of a plan runs whole.
void expect_bits_of_waiting(const Sizes& sizes, c10::ScalarType dtype) {
  World together({.rank_count = sizes.ranks, .numerics = Numerics::kCanonical});
  const auto text = fmt::format("tp={}", sizes.ranks);
  const auto expected = two_linears(together.mesh(text), sizes, dtype);
  const auto problems = run_ranks(
      sizes.ranks, StreamKind::kMemory,
      [&](World& world) {
        auto& decomposition = world.part<Decomposition>();
        decomposition.set_axis("tp");
        for (int round = 0; round < 3; ++round) {
          const auto found = two_linears(world.mesh(text), sizes, dtype);
          for (size_t i = 0; i < found.size(); ++i)
            LOCKSTEP_CHECK(same_bits(found[i], expected[i]), "result {} in round {}", i, round);
        }
        // Of both directions, forward and backward.
        LOCKSTEP_CHECK(decomposition.counts() == (Counts{4, 4}), "{} and {}", decomposition.counts().gathers,
                       decomposition.counts().scatters);
      },
      Numerics::kCanonical);
  EXPECT_THAT(problems, ::testing::Each(""));
}

TEST(Decomposition, HasTheBitsOfProductsThatWait) {
  for (const auto dtype : {c10::kFloat, c10::kBFloat16})
    for (const auto& sizes : {Sizes{2, {1, 8}, 1, 16}, Sizes{2, {3, 7}, 1, 33}, Sizes{3, {2, 4}, 1, 20},
                              Sizes{3, {5}, 0, 8}, Sizes{3, {2, 2}, 1, 5}, Sizes{2, {3, 2, 2}, 0, 4}})
      expect_bits_of_waiting(sizes, dtype);
}

RC_GTEST_PROP(Decomposition, GivesTheBitsOfOneProcess, ()) {
  const auto number = [](int64_t low, int64_t high) { return *rc::gen::inRange<int64_t>(low, high + 1); };
  const auto ranks = static_cast<int>(number(2, 4));
  const Sizes sizes{ranks, {number(1, 3), number(1, 9)}, static_cast<int>(number(0, 1)), number(1, 40)};
  expect_bits_of_waiting(sizes, *rc::gen::element(c10::kFloat, c10::kBFloat16));
}

/// Native products of fewer rows may be rounded otherwise, and no more.
TEST(Decomposition, IsNearUnderNativeNumerics) {
  const Sizes sizes{2, {2, 6}, 1, 24};
  World together({.rank_count = 2});
  const auto expected = two_linears(together.mesh("tp=2"), sizes, c10::kDouble);
  EXPECT_THAT(run_ranks(2, StreamKind::kSocket,
                        [&](World& world) {
                          world.part<Decomposition>().set_axis("tp");
                          for (int round = 0; round < 2; ++round) {
                            const auto found = two_linears(world.mesh("tp=2"), sizes, c10::kDouble);
                            for (size_t i = 0; i < found.size(); ++i)
                              LOCKSTEP_CHECK(at::allclose(found[i], expected[i], 1e-12, 1e-12), "result {}", i);
                          }
                          const auto counts = world.part<Decomposition>().counts();
                          LOCKSTEP_CHECK(counts == (Counts{2, 2}), "{} and {}", counts.gathers, counts.scatters);
                        }),
              ::testing::Each(""));
}

/// A kernel that takes another way for fewer rows, of products whose sums are finished (or, of others, are not).
template <bool kFinished>
void linear_of_many_rows(const LocalCall& call, torch::jit::Stack& stack) {
  built_in_rules(Numerics::kCanonical)->find("linear")->local(call, stack);
  auto result = stack[0].toTensor();
  const bool is_finished = !call.plan.results[0]->any_partial;
  if (is_finished == kFinished && result.size(-2) < 4) result.select(-2, 0).add_(1);
}

/// Which product is named where it does so.
std::string named_product(LocalFunction local) {
  auto rule = *built_in_rules(Numerics::kCanonical)->find("linear");
  rule.local = local;
  const auto problems = run_ranks(
      2, StreamKind::kMemory,
      [](World& world) {
        world.part<Decomposition>().set_axis("tp");
        for (int round = 0; round < 2; ++round) two_linears(world.mesh("tp=2"), {2, {4}, 0, 6}, c10::kFloat);
      },
      Numerics::kCanonical, built_in_rules(Numerics::kCanonical)->with(rule));
  EXPECT_EQ(problems[0], problems[1]);
  return problems[0];
}

TEST(Decomposition, NamesAProductWhoseRowsDependOnHowManyThereAre) {
  EXPECT_EQ(named_product(linear_of_many_rows<true>),
            "linear: the rows of a product of Float[4,6] [tp=R], computed apart, are not those of the whole product");
  EXPECT_EQ(
      named_product(linear_of_many_rows<false>),
      "linear: the rows of a product of Float[4,256] [tp=S(1)], computed apart, are not those of the whole product");
}

/// Nobody who watches sees anything else than without.
TEST(Decomposition, IsOffWhereItWouldBeSeenOrHasNoUse) {
  World together({.rank_count = 2});
  together.part<Decomposition>().set_axis("tp");
  EXPECT_FALSE(together.part<Decomposition>().is_on());
  const auto problems = run_ranks(2, StreamKind::kMemory, [](World& world) {
    auto& decomposition = world.part<Decomposition>();
    LOCKSTEP_CHECK(!decomposition.is_on());
    decomposition.set_axis("dp");
    LOCKSTEP_CHECK(decomposition.is_on());
    two_linears(world.mesh("tp=2"), {2, {1, 4}, 1, 4}, c10::kFloat);
    two_linears(world.mesh("tp=2"), {2, {1, 4}, 1, 4}, c10::kFloat);
    LOCKSTEP_CHECK(decomposition.counts() == Counts{}, "of another axis");
    struct Watching : Observer {
    } watching;
    const ObserverScope scope(world.observers(), watching);
    LOCKSTEP_CHECK(!decomposition.is_on());
  });
  EXPECT_THAT(problems, ::testing::Each(""));
}

}  // namespace
}  // namespace lockstep
