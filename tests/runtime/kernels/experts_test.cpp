// Products of experts' rows against those of all rows, 0 where none is present.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/kernels/experts/expert_products.h"
#include "runtime/tensor/packed_rows.h"

namespace lockstep {
namespace {

using at::Tensor;

struct Rows {
  Tensor present, gradient, input;  ///< all rows
};

/// Of 5 samples, 3 experts and so many positions: an expert without any, one with all, and one with some.
Rows drawn(int64_t positions, c10::ScalarType dtype) {
  at::manual_seed(3);
  auto present = at::rand({5, 3, positions}).lt(0.3);
  present.select(1, 0).fill_(false);
  present.select(1, 1).fill_(true);
  const auto rows = [&](int64_t width) {
    return at::where(present.unsqueeze(3), at::randn({5, 3, positions, width}), at::zeros({})).to(dtype);
  };
  return {present, rows(33), rows(17)};
}

class ExpertProducts : public ::testing::TestWithParam<std::tuple<int64_t, c10::ScalarType>> {
 protected:
  Rows rows_ = drawn(std::get<0>(GetParam()), std::get<1>(GetParam()));
  Tensor packed_gradient_ = packed(rows_.gradient, rows_.present), packed_input_ = packed(rows_.input, rows_.present);
};

TEST_P(ExpertProducts, WeightGradientsHaveTheBitsOfAllRows) {
  for (const auto& samples : {kernels::ContractedRange{}, kernels::ContractedRange{0, 5}, {3, 11}}) {
    const auto actual =
        kernels::canonical_expert_weight_gradient(packed_gradient_, packed_input_, rows_.present, 1, samples);
    for (int64_t e = 0; e < 3; ++e) {
      const auto expected = kernels::weight_gradient(rows_.gradient.select(1, e), rows_.input.select(1, e), samples);
      EXPECT_TRUE(testing::same_bits(actual.select(samples.stays_open() ? 1 : 0, e), expected)) << "expert " << e;
    }
  }
}

TEST_P(ExpertProducts, SamplesOfSeveralRowsAreOneSum) {
  const auto present = rows_.present.narrow(0, 0, 4).contiguous();
  const auto of = [&](const Tensor& all) { return packed(all.narrow(0, 0, 4), present); };
  const auto actual =
      kernels::canonical_expert_weight_gradient(of(rows_.gradient), of(rows_.input), present, 2, {0, 2});
  const auto merged = [&](const Tensor& all, int64_t e) {
    const auto mine = all.narrow(0, 0, 4).select(1, e).contiguous();
    return mine.view({2, 2 * mine.size(1), mine.size(2)});
  };
  for (int64_t e = 0; e < 3; ++e)
    EXPECT_TRUE(testing::same_bits(
        actual.select(1, e), kernels::weight_gradient(merged(rows_.gradient, e), merged(rows_.input, e), {0, 2})));
}

TEST_P(ExpertProducts, OfOneSampleHaveTheBitsOfProducts) {
  const auto length = rows_.present.size(2);
  // The second half of longer samples, where it begins with a leaf.
  const auto range = length < 64 ? kernels::ContractedRange{} : kernels::ContractedRange{length, 2 * length};
  const auto actual = kernels::canonical_sample_weight_gradient(packed_gradient_, packed_input_, rows_.present, range);
  const auto expected = kernels::product(rows_.gradient.transpose(2, 3), rows_.input, range);
  EXPECT_TRUE(testing::same_bits(actual, expected));
}

TEST_P(ExpertProducts, RowsHaveTheBitsOfLinear) {
  at::manual_seed(4);
  const auto weight = at::randn({3, 9, 17}).to(rows_.input.scalar_type());
  const auto actual =
      unpacked(kernels::canonical_expert_linear(packed_input_, rows_.present, weight, {}), rows_.present);
  for (int64_t e = 0; e < 3; ++e)
    EXPECT_TRUE(testing::same_bits(
        actual.select(1, e),
        at::where(rows_.present.select(1, e).unsqueeze(2),
                  kernels::linear(rows_.input.select(1, e), weight.select(0, e)), at::zeros({}, actual.options()))));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExpertProducts,
                         ::testing::Combine(::testing::Values(1, 7, 64, 256, 2048),
                                            ::testing::Values(c10::kFloat, c10::kDouble, c10::kBFloat16)));

}  // namespace
}  // namespace lockstep
