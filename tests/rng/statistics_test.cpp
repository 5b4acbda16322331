#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rng/fill.h"
#include "rng/stream.h"

/// Statistical tests with fixed seeds: they pass or fail for ever; bounds are at 4.5 to 5 standard deviations.
namespace lockstep::rng {
namespace {

constexpr int64_t kMany = 10'000'000;

std::vector<float> draw(const Distribution& distribution, uint64_t stream = 17, int64_t n = kMany, uint64_t seed = 1) {
  std::vector<float> values(static_cast<std::size_t>(n));
  fill(values.data(), ScalarKind::kFloat32, distribution, Key{seed}, stream, Subarray::whole({n}));
  return values;
}

const std::vector<float>& uniforms() {
  static const auto values = draw(uniform());
  return values;
}
const std::vector<float>& normals() {
  static const auto values = draw(normal());
  return values;
}

/// sqrt(n) times the largest distance between the empirical and the given distribution function. P(> 2.0) = 7e-4.
template <class Cdf>
double kolmogorov_smirnov(std::vector<float> values, Cdf cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = cdf(static_cast<double>(values[i])), below = static_cast<double>(i) / n;
    worst = std::max({worst, f - below, below + 1 / n - f});
  }
  return worst * std::sqrt(n);
}

/// The mean of f over values, as a distance from `expected` in standard errors.
template <class Function>
double standard_errors(const std::vector<float>& values, double expected, double deviation, Function f) {
  double sum = 0;
  for (const float x : values) sum += f(static_cast<double>(x));
  const auto n = static_cast<double>(values.size());
  return std::abs(sum / n - expected) / (deviation / std::sqrt(n));
}

double correlation_in_errors(const std::vector<float>& a, const std::vector<float>& b, std::size_t lag, double mean) {
  double product = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i + lag < a.size(); ++i) {
    const double x = static_cast<double>(a[i]) - mean, y = static_cast<double>(b[i + lag]) - mean;
    product += x * y, square_a += x * x, square_b += y * y;
  }
  return std::abs(product) / std::sqrt(square_a * square_b) * std::sqrt(static_cast<double>(a.size() - lag));
}

TEST(Statistics, MomentsOfTheUniform) {
  EXPECT_LT(standard_errors(uniforms(), 0.5, std::sqrt(1 / 12.0), [](double x) { return x; }), 4.5);
  EXPECT_LT(standard_errors(uniforms(), 1 / 3.0, std::sqrt(4 / 45.0), [](double x) { return x * x; }), 4.5);
}

TEST(Statistics, MomentsOfTheNormal) {
  EXPECT_LT(standard_errors(normals(), 0, 1, [](double x) { return x; }), 4.5);
  EXPECT_LT(standard_errors(normals(), 1, std::sqrt(2.0), [](double x) { return x * x; }), 4.5);
  EXPECT_LT(standard_errors(normals(), 0, std::sqrt(15.0), [](double x) { return x * x * x; }), 4.5);
  EXPECT_LT(standard_errors(normals(), 3, std::sqrt(96.0), [](double x) { return x * x * x * x; }), 4.5);
}

TEST(Statistics, KolmogorovSmirnovOfTheUniform) {
  EXPECT_LT(kolmogorov_smirnov(uniforms(), [](double x) { return x; }), 2.0);
}

TEST(Statistics, KolmogorovSmirnovOfTheNormal) {
  EXPECT_LT(kolmogorov_smirnov(normals(), [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }), 2.0);
}

TEST(Statistics, KolmogorovSmirnovOfTheTruncatedNormal) {
  const auto cdf = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  const double low = cdf(-1), high = cdf(3);
  const auto values = draw(truncated_normal(0, 1, -1, 3), 18, 1'000'000);
  EXPECT_LT(kolmogorov_smirnov(values, [&](double x) { return (cdf(x) - low) / (high - low); }), 2.0);
}

TEST(Statistics, TailsOfTheNormalReachBeyondFive) {
  const auto beyond = std::count_if(normals().begin(), normals().end(), [](float x) { return std::abs(x) > 5; });
  EXPECT_NEAR(static_cast<double>(beyond), 5.73, 12);  // n P(|Z| > 5), Poisson
  EXPECT_GT(*std::max_element(normals().begin(), normals().end()), 4.5f);
}

TEST(Statistics, BernoulliHitsItsProbability) {
  for (const double p : {0.001, 0.1, 0.5, 0.9}) {
    const auto values = draw(bernoulli(p), 19);
    EXPECT_LT(standard_errors(values, p, std::sqrt(p * (1 - p)), [](double x) { return x; }), 4.5) << p;
  }
}

TEST(Statistics, NeighboursAreUncorrelated) {
  for (std::size_t lag = 1; lag <= 9; ++lag) {
    EXPECT_LT(correlation_in_errors(uniforms(), uniforms(), lag, 0.5), 4.5) << "lag " << lag;
    EXPECT_LT(correlation_in_errors(normals(), normals(), lag, 0), 4.5) << "lag " << lag;
  }
}

TEST(Statistics, SquaresOfNeighboursAreUncorrelated) {  // Box and Muller's pairs share a radius and an angle
  auto squares = draw(normal(), 20, 1'000'000);
  for (float& x : squares) x *= x;
  for (std::size_t lag = 1; lag <= 4; ++lag) EXPECT_LT(correlation_in_errors(squares, squares, lag, 1), 4.5) << lag;
}

/// Chi-square on a 64 x 64 grid of pairs, in standard deviations.
double pairs_in_deviations(const std::vector<float>& a, const std::vector<float>& b, std::size_t lag) {
  std::vector<double> cells(64 * 64);
  for (std::size_t i = 0; i + lag < a.size(); ++i) {
    cells[static_cast<std::size_t>(a[i] * 64) * 64 + static_cast<std::size_t>(b[i + lag] * 64)] += 1;
  }
  const double expected = static_cast<double>(a.size() - lag) / 4096, freedom = 4095;
  double sum = 0;
  for (const double count : cells) sum += (count - expected) * (count - expected) / expected;
  return std::abs(sum - freedom) / std::sqrt(2 * freedom);
}

TEST(Statistics, PairsOfNeighboursFillTheSquare) {
  for (const std::size_t lag : {1u, 2u, 3u, 4u})
    EXPECT_LT(pairs_in_deviations(uniforms(), uniforms(), lag), 4.5) << lag;
}

TEST(Statistics, StreamsAndSeedsAreIndependent) {
  const auto name = [](uint64_t step, uint64_t draw) { return stream_of({step, "layers.0.dropout", draw}); };
  const auto base = draw(uniform(), name(1, 0), 1'000'000);
  const std::vector<std::vector<float>> others = {
      draw(uniform(), name(2, 0), 1'000'000), draw(uniform(), name(1, 1), 1'000'000),
      draw(uniform(), name(1, 0) + 1, 1'000'000), draw(uniform(), name(1, 0), 1'000'000, /*seed=*/2)};
  for (const auto& other : others) {
    EXPECT_LT(correlation_in_errors(base, other, 0, 0.5), 4.5);
    EXPECT_LT(pairs_in_deviations(base, other, 0), 4.5);
  }
}

}  // namespace
}  // namespace lockstep::rng
