#include "rng/subarray.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <vector>

#include "rng/fill.h"
#include "tests/rng/known_answers.h"
#include "tests/support/instruction_sets.h"

namespace lockstep::rng {
namespace {

struct Case {
  ScalarKind kind;
  Distribution distribution;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {ScalarKind::kFloat32, uniform(-1, 1)},
      {ScalarKind::kFloat32, normal()},
      {ScalarKind::kFloat32, truncated_normal(0, 1, -2, 2)},
      {ScalarKind::kFloat64, uniform()},
      {ScalarKind::kFloat64, normal()},
      {ScalarKind::kFloat64, truncated_normal(0, 1, -1, 2)},
      {ScalarKind::kBFloat16, normal()},
      {ScalarKind::kFloat16, uniform()},
      {ScalarKind::kFloat16, dropout_mask(0.9)},
      {ScalarKind::kFloat64, dropout_mask(0.9)},
      {ScalarKind::kInt64, integers(-7, 1000)},
      {ScalarKind::kBool, bernoulli(0.5)},
  };
  return list;
}

rc::Gen<std::vector<int64_t>> shapes() {
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, 5), [](std::size_t rank) {
    return rc::gen::container<std::vector<int64_t>>(rank, rc::gen::inRange<int64_t>(0, 12));
  });
}

/// A random box of a tensor whose output has random padding between elements in every dimension.
Subarray strided_box(const std::vector<int64_t>& sizes, uint64_t base) {
  std::vector<int64_t> starts, lengths;
  for (const int64_t size : sizes) {
    starts.push_back(*rc::gen::inRange<int64_t>(0, size + 1));
    lengths.push_back(*rc::gen::inRange<int64_t>(0, size - starts.back() + 1));
  }
  auto subarray = Subarray::of(sizes, {starts, lengths}, base);
  int64_t stride = *rc::gen::inRange<int64_t>(1, 3);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    subarray.dimensions[d].stride = stride;
    stride *= std::max<int64_t>(lengths[d], 1) + *rc::gen::inRange<int64_t>(0, 3);
  }
  return subarray;
}

/// Visits (offset in the whole tensor, offset in the output) of a box, element by element.
template <class Visit>
void each_element(const Subarray& subarray, std::size_t dimension, int64_t global, int64_t local, Visit&& visit) {
  if (dimension == subarray.dimensions.size()) return visit(global, local);
  const auto& d = subarray.dimensions[dimension];
  for (int64_t i = 0; i < d.length; ++i) {
    each_element(subarray, dimension + 1, global * d.global_size + d.start + i, local + i * d.stride, visit);
  }
}

uint64_t random_base() {
  const uint64_t offset = *rc::gen::inRange<uint64_t>(0, 1000);
  return *rc::gen::element<uint64_t>(0, (uint64_t{1} << 32) - 300, (uint64_t{1} << 34) - 500, uint64_t{1} << 61) +
         offset;
}

void any_box_is_cut_from_the_whole(InstructionSet set) {
  const auto& c = cases()[*rc::gen::inRange<std::size_t>(0, cases().size())];
  const auto sizes = *shapes();
  const uint64_t base = random_base(), seed = *rc::gen::arbitrary<uint64_t>(), stream = *rc::gen::arbitrary<uint64_t>();
  const auto subarray = strided_box(sizes, base);
  const auto whole = Subarray::whole(sizes, base);
  std::vector<uint64_t> all(static_cast<std::size_t>(whole.elements()) + 1);
  fill(all.data(), c.kind, c.distribution, Key{seed}, stream, whole, InstructionSet::kBaseline);

  int64_t extent = 1;
  for (const auto& d : subarray.dimensions) extent += std::max<int64_t>(d.length - 1, 0) * d.stride;
  const auto bytes = static_cast<std::size_t>(extent * size_of(c.kind));
  std::vector<unsigned char> expected(bytes, 0xcd), drawn(bytes, 0xcd);
  fill(drawn.data(), c.kind, c.distribution, Key{seed}, stream, subarray, set);
  const auto size = static_cast<std::size_t>(size_of(c.kind));
  each_element(subarray, 0, 0, 0, [&](int64_t global, int64_t local) {
    const auto bits = bits_at(all.data(), c.kind, static_cast<std::size_t>(global));
    std::memcpy(expected.data() + static_cast<std::size_t>(local) * size, &bits, size);
  });
  RC_ASSERT(drawn == expected);  // the gaps between elements included
}

void same_bits_as_the_baseline(InstructionSet set) {
  const auto& c = cases()[*rc::gen::inRange<std::size_t>(0, cases().size())];
  const auto n = *rc::gen::inRange<int64_t>(0, 700);
  const auto subarray = Subarray::whole({n}, random_base());
  std::vector<uint64_t> oracle(static_cast<std::size_t>(n)), drawn(static_cast<std::size_t>(n));
  fill(oracle.data(), c.kind, c.distribution, Key{9}, 1, subarray, InstructionSet::kBaseline);
  fill(drawn.data(), c.kind, c.distribution, Key{9}, 1, subarray, set);
  RC_ASSERT(drawn == oracle);
}

class Subarrays : public testing::OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Subarrays, testing::every_set(), testing::set_name);

TEST_P(Subarrays, AnyBoxEqualsTheSameBoxCutFromTheWhole) {
  testing::check_property([] { any_box_is_cut_from_the_whole(GetParam()); });
}
TEST_P(Subarrays, HaveTheBaselinesBits) {
  testing::check_property([] { same_bits_as_the_baseline(GetParam()); });
}

TEST(Subarray, BatchRowsKeepTheirValuesWhenMicrobatched) {
  std::vector<float> whole(6 * 5), part(2 * 5);
  fill(whole.data(), ScalarKind::kFloat32, normal(), Key{3}, 4, Subarray::whole({6, 5}));
  for (int64_t microbatch = 0; microbatch < 3; ++microbatch) {
    fill(part.data(), ScalarKind::kFloat32, normal(), Key{3}, 4, Subarray::of({6, 5}, {{2 * microbatch, 0}, {2, 5}}));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 10 * microbatch));
  }
}

TEST(Subarray, IndicesPastFourGigaAreDistinct) {
  float low[8], high[8];
  fill(low, ScalarKind::kFloat32, uniform(), Key{3}, 4, Subarray::whole({8}));
  fill(high, ScalarKind::kFloat32, uniform(), Key{3}, 4, Subarray::whole({8}, uint64_t{4} << 32));
  for (int i = 0; i < 8; ++i) EXPECT_NE(low[i], high[i]);
}

}  // namespace
}  // namespace lockstep::rng
