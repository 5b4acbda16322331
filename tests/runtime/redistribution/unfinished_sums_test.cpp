// What it costs to add unfinished sums: native numerics reduces their sum, canonical numerics a formal sum, whose terms
// travel side by side until each is whole.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using testing::exact_tensor;

at::Tensor fractions(c10::IntArrayRef sizes, int term) { return exact_tensor(sizes).add(term).mul(0.1); }

/// Products whose contracted dimension the axis cuts, added up as unfused query, key and value gradients are.
at::Tensor sum_of_products(const Mesh& mesh, int terms, c10::ScalarType dtype = c10::kFloat) {
  at::Tensor sum;
  for (int term = 0; term < terms; ++term) {
    const auto a = distribute(fractions({6, 128}, 0).to(dtype), Layout::parse(mesh, "[tp=S(1)]"));
    const auto b = distribute(fractions({128, 10}, term).to(dtype), Layout::parse(mesh, "[tp=S(0)]"));
    sum = sum.defined() ? at::add(sum, at::mm(a, b)) : at::mm(a, b);
  }
  return sum;
}

TrafficCount reductions(Numerics numerics, int terms) {
  const auto world = testing::simulated_world({{"tp", 2}}, {.numerics = numerics});
  const auto& mesh = world->mesh("tp=2");
  redistribute(sum_of_products(mesh, terms), Layout::replicated(mesh));
  return world->traffic().on("tp", CollectiveKind::kAllReduce);
}

/// n terms cost n on the way to their owners, and one from there.
TEST(UnfinishedSums, AreReducedOnceAndTravelSideBySide) {
  for (const int terms : {1, 2, 3, 4}) {
    const auto native = reductions(Numerics::kNative, terms), canonical = reductions(Numerics::kCanonical, terms);
    EXPECT_EQ(native.count, 1) << terms;
    EXPECT_EQ(canonical.count, 1) << terms;
    EXPECT_EQ(canonical.bytes, (terms + 1) * native.bytes / 2) << terms;
  }
  EXPECT_EQ(reductions(Numerics::kCanonical, 5).count, 2) << "four are the most that wait";
}

TEST(UnfinishedSums, SayHowManyTheyAre) {
  const auto world = testing::simulated_world({{"tp", 2}}, {.numerics = Numerics::kCanonical});
  const auto& mesh = world->mesh("tp=2");
  const auto sum = sum_of_products(mesh, 3);
  EXPECT_EQ(layout_of(sum).text(), "[tp=P(sum:128/32+3)]");
  EXPECT_EQ(Layout::parse(mesh, "[tp=P(sum:128/32+3)]"), layout_of(sum));
  EXPECT_EQ(sharded(sum).shards()->local_tensors()[0].sizes(), (std::vector<int64_t>{3, 6, 10}));
}

TEST(UnfinishedSums, AddUpToOneRanksBits) {
  for (const int terms : {2, 3, 4, 5, 6}) {
    const auto sum_on = [terms](int64_t ranks, const char* target) {
      const auto world = testing::simulated_world({{"tp", ranks}}, {.numerics = Numerics::kCanonical});
      const auto& mesh = world->mesh(fmt::format("tp={}", ranks));
      return gather(redistribute(sum_of_products(mesh, terms), Layout::parse(mesh, target)));
    };
    for (const int64_t ranks : {2, 3, 4})
      for (const char* target : {"[]", "[tp=S(1)]"})
        EXPECT_TRUE(testing::same_bits(sum_on(ranks, target), sum_on(1, "[]"))) << terms << " " << ranks << target;
  }
}

/// What would be added in another order, or rounded at another place, is reduced first.
TEST(UnfinishedSums, AreNoFormalSumWhereBitsWouldDiffer) {
  const auto run = [](int64_t ranks, c10::ScalarType dtype, const auto& add) {
    const auto world = testing::simulated_world({{"tp", ranks}}, {.numerics = Numerics::kCanonical});
    const auto& mesh = world->mesh(fmt::format("tp={}", ranks));
    const auto sum = add(sum_of_products(mesh, 1, dtype), sum_of_products(mesh, 2, dtype));
    const auto whole = gather(redistribute(sum, Layout::replicated(mesh)));
    return std::pair(whole, world->traffic().on("tp", CollectiveKind::kAllReduce).count);
  };
  const auto expect = [&](int64_t reductions, c10::ScalarType dtype, const char* what, const auto& add) {
    const auto [two, count] = run(2, dtype, add);
    EXPECT_TRUE(testing::same_bits(two, run(1, dtype, add).first)) << what;
    EXPECT_EQ(count, reductions) << what;
  };
  const auto sum = [](const auto& a, const auto& b) { return at::add(b, a); };
  expect(1, c10::kFloat, "three terms", sum);
  expect(1, c10::kDouble, "three terms", sum);
  expect(3, c10::kBFloat16, "each term is rounded", sum);
  expect(2, c10::kFloat, "a formal sum at the right", [](const auto& a, const auto& b) { return at::add(a, b); });
  expect(2, c10::kFloat, "a factor", [](const auto& a, const auto& b) { return at::add(b, a, 0.3); });
  expect(2, c10::kFloat, "a difference", [](const auto& a, const auto& b) { return at::sub(b, a); });
  expect(2, c10::kFloat, "broadcasting", [](const auto& a, const auto& b) { return at::add(b, a.select(0, 1)); });
  expect(2, c10::kFloat, "in place", [](const auto& a, const auto& b) {
    auto whole = redistribute(b, Layout::replicated(layout_of(b).mesh()));
    return whole.add_(a);
  });
}

}  // namespace
}  // namespace lockstep
