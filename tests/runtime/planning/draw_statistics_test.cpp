// What a mesh draws has LibTorch's distributions. Seeds are fixed: the tests pass or fail for ever; bounds are at 4.5
// standard deviations, or what a distance between distribution functions exceeds once in 1,500 times.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

using at::Tensor;

constexpr int64_t kRows = 300, kColumns = 400, kMany = kRows * kColumns;

class DrawStatistics : public ::testing::Test {
 protected:
  DrawStatistics() : world_(simulated_world({{"dp", 2}, {"tp", 3}})), mesh_(world_->mesh("dp=2,tp=3")) {}

  Tensor put(const Tensor& plain, const char* layout = "[dp=S(0), tp=S(1)]") const {
    return distribute(plain, Layout::parse(mesh_, layout));
  }
  /// Of the dtype and of kMany elements, to be drawn into.
  Tensor some(c10::ScalarType dtype = c10::kDouble) const { return put(at::zeros({kRows, kColumns}, dtype)); }

  std::shared_ptr<World> world_;
  const Mesh& mesh_;
  MeshScope scope_{mesh_};
  RandomScope seed_{7};
};

std::vector<double> values(const Tensor& drawn) {
  const auto flat = gather(drawn).to(c10::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// sqrt(n) times the largest distance of the distribution functions. P(> 2.0) = 7e-4.
double distance(const Tensor& drawn, const std::function<double(double)>& cdf) {
  auto sorted = values(drawn);
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double worst = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double f = cdf(sorted[i]), below = static_cast<double>(i) / n;
    worst = std::max({worst, f - below, below + 1 / n - f});
  }
  return worst * std::sqrt(n);
}

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

/// How many standard errors the mean is off.
double errors_of_mean(const Tensor& drawn, double mean, double variance) {
  const auto all = gather(drawn).to(c10::kDouble);
  return std::abs(all.mean().item<double>() - mean) / std::sqrt(variance / static_cast<double>(all.numel()));
}

void expect_counts(const Tensor& drawn, const std::vector<double>& probabilities) {
  const auto counts =
      at::bincount(gather(drawn).reshape({-1}).to(c10::kLong), {}, static_cast<int64_t>(probabilities.size()));
  ASSERT_EQ(counts.numel(), static_cast<int64_t>(probabilities.size()));
  const auto n = static_cast<double>(drawn.numel());
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double p = probabilities[i], count = counts[static_cast<int64_t>(i)].item<double>();
    EXPECT_NEAR(count, n * p, 4.5 * std::sqrt(n * p * (1 - p))) << i;
  }
}

TEST_F(DrawStatistics, ContinuousOnesHaveTheirDistributionFunctions) {
  for (const auto dtype : {c10::kDouble, c10::kFloat}) {
    EXPECT_LT(distance(at::rand_like(some(dtype)), [](double x) { return x; }), 2) << "rand";
    EXPECT_LT(distance(at::randn_like(some(dtype)), normal_cdf), 2) << "randn";
    EXPECT_LT(distance(some(dtype).exponential_(2), [](double x) { return 1 - std::exp(-2 * x); }), 2) << "exponential";
    EXPECT_LT(
        distance(some(dtype).cauchy_(1, 3), [](double x) { return 0.5 + std::atan((x - 1) / 3) / std::numbers::pi; }),
        2)
        << "cauchy";
    EXPECT_LT(distance(some(dtype).log_normal_(1, 0.5), [](double x) { return normal_cdf((std::log(x) - 1) / 0.5); }),
              2)
        << "log_normal";
  }
}

TEST_F(DrawStatistics, NormalsHaveTheirOwnMeansAndDeviations) {
  const auto mean = at::linspace(-3, 3, kColumns, c10::kDouble), deviation = at::linspace(0.1, 2, kRows, c10::kDouble);
  const auto means = mean.expand({kRows, kColumns}), deviations = deviation.view({-1, 1}).expand({kRows, kColumns});
  const auto standard = [&](const Tensor& drawn) {
    return distribute((gather(drawn) - means) / deviations, Layout::replicated(mesh_));
  };
  const auto both = at::normal(put(means), put(deviations));
  EXPECT_LT(distance(standard(both), normal_cdf), 2);
  EXPECT_EQ(at::normal(put(means), put(deviation.view({-1, 1}), "[dp=S(0), tp=R]")).sizes(), both.sizes());
  EXPECT_LT(distance(at::normal(put(means), 2) - put(means), [](double x) { return normal_cdf(x / 2); }), 2);
  EXPECT_LT(distance((at::normal(5, put(deviations)) - 5) / put(deviations), normal_cdf), 2);
  EXPECT_LT(distance(at::normal(5, 2, {kRows, kColumns}, {}, put(mean, "[]").options()),
                     [](double x) { return normal_cdf((x - 5) / 2); }),
            2);
}

TEST_F(DrawStatistics, TruthValuesHaveTheirProbabilities) {
  for (const double p : {0.001, 0.3, 0.9}) {
    for (const auto dtype : {c10::kDouble, c10::kLong, c10::kBool, c10::kByte})
      EXPECT_LT(errors_of_mean(some(dtype).bernoulli_(p), p, p * (1 - p)), 4.5) << p;
    const auto ps = put(at::full({kRows, kColumns}, p, c10::kDouble));
    EXPECT_LT(errors_of_mean(at::bernoulli(ps), p, p * (1 - p)), 4.5) << p;
  }
  const auto sure = at::tensor({0.0, 1.0}, c10::kDouble).expand({kRows, 2}).contiguous();
  EXPECT_TRUE(at::equal(gather(at::bernoulli(put(sure))), sure));
  EXPECT_EQ(gather(some().bernoulli_(1)).min().item<double>(), 1);
  EXPECT_EQ(gather(some().bernoulli_(0)).max().item<double>(), 0);
}

TEST_F(DrawStatistics, TrialsUntilSuccess) {
  std::vector<double> probabilities{0};
  for (int k = 1; k <= 40; ++k) probabilities.push_back(0.4 * std::pow(0.6, k - 1));
  const auto drawn = some(c10::kLong).geometric_(0.4);
  expect_counts(at::clamp_max(drawn, 40), [&] {
    auto all = probabilities;
    all.back() = std::pow(0.6, 39);
    return all;
  }());
  EXPECT_LT(errors_of_mean(some().geometric_(1e-17), 1e17, 1e34), 4.5) << "a small probability keeps its digits";
}

TEST_F(DrawStatistics, IntegersAreEquallyLikely) {
  for (const auto dtype : {c10::kDouble, c10::kLong, c10::kChar, c10::kBFloat16})
    expect_counts(some(dtype).random_(int64_t{0}, 7), std::vector<double>(7, 1 / 7.0));
  expect_counts(at::randint_like(some(), -3, 4) + 3, std::vector<double>(7, 1 / 7.0));
  expect_counts(some(c10::kByte).random_(), std::vector<double>(256, 1 / 256.0));
  expect_counts(some(c10::kBool).random_(), {0.5, 0.5});
  const double range = 0x1p62, third = range / 3;
  EXPECT_LT(distance(some(c10::kLong).random_(static_cast<int64_t>(third), int64_t{1} << 62),
                     [=](double x) { return (x - third) / (range - third); }),
            2)
      << "no trace of a modulus";
  EXPECT_LT(distance(some(c10::kLong).random_(), [](double x) { return x * 0x1p-63; }), 2);
  EXPECT_LT(distance(some(c10::kLong).random_(std::numeric_limits<int64_t>::min(), std::optional<int64_t>()),
                     [](double x) { return x * 0x1p-64 + 0.5; }),
            2);
}

TEST_F(DrawStatistics, WhatIsRoundedStaysWithinItsRange) {
  const auto drawn = gather(some(c10::kBFloat16).random_(int64_t{301}, 999)).to(c10::kDouble);
  EXPECT_GE(drawn.min().item<double>(), 301);
  EXPECT_LT(drawn.max().item<double>(), 999);
  EXPECT_EQ(gather(some(c10::kFloat).random_()).max().item<double>() <= 0x1p24, true);
}

TEST_F(DrawStatistics, CategoriesComeAsOftenAsTheyWeigh) {
  const auto weights = at::tensor({1.0, 0.0, 5.0, 2.0, 2.0}, c10::kDouble);
  const auto rows = put(weights.expand({kRows, 5}));
  expect_counts(at::multinomial(rows, kColumns, true), {0.1, 0, 0.5, 0.2, 0.2});
  expect_counts(at::multinomial(put(weights, "[]"), kMany, true), {0.1, 0, 0.5, 0.2, 0.2});
  const auto many = put(weights.expand({kMany, 5}));
  expect_counts(at::multinomial(many, 1), {0.1, 0, 0.5, 0.2, 0.2});
}

/// The second of two is drawn from what the first left.
TEST_F(DrawStatistics, WithoutReplacementNothingComesTwice) {
  const std::vector<double> p{0.1, 0, 0.5, 0.2, 0.2};
  const auto drawn = at::multinomial(put(at::tensor(p, c10::kDouble).expand({kMany, 5})), 4);
  const auto pairs = drawn.select(1, 0) * 5 + drawn.select(1, 1);
  std::vector<double> expected;
  for (size_t i = 0; i < 5; ++i)
    for (size_t j = 0; j < 5; ++j) expected.push_back(i == j ? 0 : p[i] * p[j] / (1 - p[i]));
  expect_counts(pairs, expected);
  const auto sorted = std::get<0>(gather(drawn).sort(1));
  EXPECT_TRUE(at::equal(sorted, at::tensor({0, 2, 3, 4}, c10::kLong).expand({kMany, 4})));
}

/// How far numbers are from their places, all together: its mean is (n^2 - 1) / 3, its variance (n + 1)(2 n^2 + 7) / 45
/// (Diaconis and Graham, Spearman's footrule as a measure of disarray, 1977).
TEST_F(DrawStatistics, PermutationsHaveEachNumberOnce) {
  const auto options = put(at::zeros({1}), "[]").options().dtype(c10::kLong);
  for (const int64_t n : {0, 1, 7, 300, 5000}) {
    const auto order = gather(at::randperm(n, options));
    EXPECT_TRUE(at::equal(std::get<0>(order.sort()), at::arange(n))) << n;
    if (n >= 300) {
      EXPECT_FALSE(at::equal(order, at::arange(n))) << n;
      const auto size = static_cast<double>(n);
      const double variance = (size + 1) * (2 * size * size + 7) / 45;
      const auto far = static_cast<double>((order - at::arange(n)).abs().sum().item<int64_t>());
      EXPECT_NEAR(far, (size * size - 1) / 3, 4.5 * std::sqrt(variance)) << n;
    }
  }
}

TEST_F(DrawStatistics, SlopesAreDrawnBelowZeroOnly) {
  const auto x = put(at::linspace(-1, 1, kMany, c10::kDouble).view({kRows, kColumns}));
  const auto slopes = gather(at::rrelu(x, 0.1, 0.3, true)) / gather(x);
  const auto below = gather(x) <= 0;
  EXPECT_LT(distance(distribute(slopes.masked_select(below), Layout::replicated(mesh_)),
                     [](double s) { return (s - 0.1) / 0.2; }),
            2);
  EXPECT_TRUE(at::equal(slopes.masked_select(~below), at::ones({kMany / 2}, c10::kDouble)));
}

TEST_F(DrawStatistics, DropoutsKeepMeanAndVariance) {
  const auto features = at::feature_dropout(put(at::ones({kRows, kColumns, 2}, c10::kDouble)), 0.25, true);
  EXPECT_TRUE(at::equal(gather(features.select(2, 0)), gather(features.select(2, 1))));
  EXPECT_LT(errors_of_mean(features.select(2, 1), 1, 1 / 3.0), 4.5);
  const auto normal = gather(at::alpha_dropout(at::randn_like(some()), 0.2, true));
  EXPECT_NEAR(normal.mean().item<double>(), 0, 4.5 / std::sqrt(kMany));
  EXPECT_NEAR(normal.var().item<double>(), 1, 4.5 * std::sqrt(3.0 / kMany));
}

TEST_F(DrawStatistics, DrawsOfOneModuleDiffer) {
  for (const auto draw : {+[](const Tensor& x) { return x.clone().exponential_(); },
                          +[](const Tensor& x) { return at::bernoulli(x + 0.5); },
                          +[](const Tensor& x) { return at::randint_like(x, 1000); }})
    EXPECT_FALSE(at::equal(gather(draw(some())), gather(draw(some()))));
}

}  // namespace
}  // namespace lockstep::testing
