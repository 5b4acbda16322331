// What it costs to add unfinished sums: canonical numerics reduces each of them, native numerics their sum.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "runtime/redistribute.h"
#include "runtime/sharded_tensor.h"
#include "tests/support/tensors.h"

namespace lockstep {
namespace {

using testing::exact_tensor;

at::Tensor fractions(c10::IntArrayRef sizes, int term) { return exact_tensor(sizes).add(term).mul(0.1); }

/// Products whose contracted dimension the axis cuts, added up as unfused query, key and value gradients are.
at::Tensor sum_of_products(const Mesh& mesh, int terms) {
  at::Tensor sum;
  for (int term = 0; term < terms; ++term) {
    const auto a = distribute(fractions({6, 128}, 0), Layout::parse(mesh, "[tp=S(1)]"));
    const auto b = distribute(fractions({128, 10}, term), Layout::parse(mesh, "[tp=S(0)]"));
    sum = sum.defined() ? at::add(sum, at::mm(a, b)) : at::mm(a, b);
  }
  return redistribute(sum, Layout::replicated(mesh));
}

TrafficCount reductions(Numerics numerics, int terms) {
  const auto world = testing::simulated_world({{"tp", 2}}, {.numerics = numerics});
  sum_of_products(world->mesh("tp=2"), terms);
  return world->traffic().on("tp", CollectiveKind::kAllReduce);
}

TEST(UnfinishedSums, AreReducedEachByCanonicalNumerics) {
  for (const int terms : {1, 2, 3}) {
    const auto native = reductions(Numerics::kNative, terms), canonical = reductions(Numerics::kCanonical, terms);
    EXPECT_EQ(native.count, 1) << terms;
    EXPECT_EQ(canonical.count, terms);
    EXPECT_EQ(canonical.bytes, terms * native.bytes);
  }
}

TEST(UnfinishedSums, AddUpToOneRanksBits) {
  for (const int terms : {2, 3}) {
    const auto sum_on = [terms](int64_t ranks) {
      const auto world = testing::simulated_world({{"tp", ranks}}, {.numerics = Numerics::kCanonical});
      return gather(sum_of_products(world->mesh(fmt::format("tp={}", ranks)), terms));
    };
    EXPECT_TRUE(testing::same_bits(sum_on(2), sum_on(1))) << terms;
  }
}

}  // namespace
}  // namespace lockstep
