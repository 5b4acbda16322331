// Panels of a factor that several products have in common: packed once, and only where it is said that they are.
#include "runtime/kernels/products/shared_factors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/cases/product_cases.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/mutants.h"

namespace lockstep::testing {
namespace {

using kernels::Contraction;
using kernels::SharedFactors;

template <class T>
SharedFactors::Bytes bytes_of(const std::vector<T>& memory) {
  const auto* begin = reinterpret_cast<const std::byte*>(memory.data());
  return {begin, begin + memory.size() * sizeof(T)};
}

class SharedPanels : public OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, SharedPanels, every_set(), set_name);

template <class Input, class T>
void panels_give_the_oracles_bits(InstructionSet set) {
  const auto product = ProductCase<Input, T>::any();
  const SharedFactors shared({bytes_of(product.b.memory)});
  for (int rank = 0; rank < 3; ++rank) RC_ASSERT(same_numbers(product.run(set, 2), product.expected));
}

TEST_P(SharedPanels, GiveTheOraclesBits) {
  expect_holds([] { panels_give_the_oracles_bits<float, float>(GetParam()); });
  expect_holds([] { panels_give_the_oracles_bits<double, double>(GetParam()); });
  expect_holds([] { panels_give_the_oracles_bits<kernels::Bfloat16, float>(GetParam()); });
}

/// A product whose right factor is overwritten after it was computed once: whoever packs it again sees that.
struct Overwritten {
  explicit Overwritten(uint32_t seed = 7) : product(9, 600, Contraction::over(700), Numbers::kNormal, seed) {}
  ProductCase<float, float> product;
  std::vector<float> first = {};

  void overwrite() {
    first = run();
    for (auto& value : product.b.memory) value = -value;
  }
  std::vector<float> run() const { return product.run(best_instruction_set(), 1); }
};

TEST(SharedFactors, ArePackedOnce) {
  Overwritten of;
  {
    const SharedFactors shared({bytes_of(of.product.b.memory)});
    of.overwrite();
    EXPECT_TRUE(same_numbers(of.run(), of.first)) << "packed again";
  }
  EXPECT_FALSE(same_numbers(of.run(), of.first)) << "kept after its scope";
}

TEST(SharedFactors, AreThoseOfTheirMemoryAlone) {
  Overwritten of;
  const std::vector<float> elsewhere(10);
  const SharedFactors shared({bytes_of(elsewhere)});
  of.overwrite();
  EXPECT_FALSE(same_numbers(of.run(), of.first));
}

TEST(SharedFactors, OfAnInnerScopeLeaveTheOuterOnesWhereTheyAre) {
  Overwritten of, inside(8);
  const SharedFactors outer({bytes_of(of.product.b.memory)});
  of.overwrite();
  {
    const SharedFactors inner({bytes_of(inside.product.b.memory)});
    inside.overwrite();
    EXPECT_TRUE(same_numbers(inside.run(), inside.first));
    EXPECT_FALSE(same_numbers(of.run(), of.first)) << "the inner scope knows nothing of it";
  }
  EXPECT_TRUE(same_numbers(of.run(), of.first));
}

/// Different parts and layouts of the same memory are different factors.
TEST(SharedFactors, AreToldApartByTheirLayout) {
  const SharedFactors::Part part{&part, 5, 0, 1, 5, 0, 4, 5, nullptr};
  SharedFactors shared({});
  const auto first = shared.panels_of(part, 100);
  EXPECT_FALSE(first.are_packed);
  EXPECT_TRUE(shared.panels_of(part, 100).are_packed);
  auto other = part;
  other.data = &other;
  EXPECT_FALSE(shared.panels_of(other, 100).are_packed) << "of other memory";
  other = part, other.tiles = &other;
  EXPECT_FALSE(shared.panels_of(other, 100).are_packed) << "of other tiles";
  other = part;
  for (int64_t SharedFactors::Part::*field :
       {&SharedFactors::Part::row_stride, &SharedFactors::Part::sample_stride, &SharedFactors::Part::element_stride,
        &SharedFactors::Part::sample_length, &SharedFactors::Part::first_row, &SharedFactors::Part::rows,
        &SharedFactors::Part::positions}) {
    other.*field += 1;
    const auto panels = shared.panels_of(other, 100);
    EXPECT_FALSE(panels.are_packed);
    EXPECT_NE(panels.memory, first.memory);
    other = part;
  }
}

/// Of 600 columns in two blocks the first needs 1.4 MB, the second 0.3 MB.
TEST(SharedFactors, OfWhichSomeHaveNoRoomGiveTheSame) {
  Overwritten of;
  SharedFactors outer({});
  outer.panels_of({&outer, 1, 1, 1, 1, 0, 1, 1, nullptr}, (int64_t{64} << 20) - (int64_t{1} << 19));
  const SharedFactors shared({bytes_of(of.product.b.memory)});
  EXPECT_TRUE(same_numbers(of.run(), of.product.expected));
  of.overwrite();
  const auto some_anew = of.run();
  EXPECT_FALSE(same_numbers(some_anew, of.first)) << "what found no room is packed each time";
  EXPECT_EQ(some_anew.at(599), of.first.at(599)) << "what found room is kept";
}

TEST(SharedFactors, ArePackedElsewhereWhereNoRoomIsLeft) {
  SharedFactors shared({});
  const SharedFactors::Part part{&part, 1, 1, 1, 1, 0, 1, 1, nullptr};
  const auto panels = shared.panels_of(part, int64_t{1} << 40);
  EXPECT_EQ(panels.memory, nullptr);
  EXPECT_FALSE(panels.are_packed);
}

}  // namespace
}  // namespace lockstep::testing
