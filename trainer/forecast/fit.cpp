#include "trainer/forecast/fit.h"

#include <algorithm>
#include <utility>

namespace lockstep::trainer::forecast {
namespace {

constexpr int kShares = 3;
constexpr double Hardware::*kFitted[kShares] = {&Hardware::products, &Hardware::attention, &Hardware::elements};

using Column = std::array<double, kShares>;

Column forecasts(const std::array<MeasuredStep, kShares>& steps, const Hardware& hardware) {
  Column seconds;
  for (int i = 0; i < kShares; ++i) seconds[i] = time_of(steps[i].workload, steps[i].settings, hardware).step();
  return seconds;
}

/// Cramer's rule.
double determinant(const std::array<Column, kShares>& c) {
  return c[0][0] * (c[1][1] * c[2][2] - c[2][1] * c[1][2]) - c[1][0] * (c[0][1] * c[2][2] - c[2][1] * c[0][2]) +
         c[2][0] * (c[0][1] * c[1][2] - c[1][1] * c[0][2]);
}

}  // namespace

/// A forecast is all but linear in the shares' inverses (a product may wait for its weight): Newton's method.
Hardware fitted(Hardware hardware, const std::array<MeasuredStep, kShares>& steps) {
  constexpr int kIterations = 20;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const auto now = forecasts(steps, hardware);
    Column missing;
    for (int i = 0; i < kShares; ++i) missing[i] = steps[i].seconds - now[i];
    std::array<Column, kShares> slopes;  // of twice the inverse
    for (int share = 0; share < kShares; ++share) {
      auto other = hardware;
      other.*kFitted[share] /= 2;
      slopes[share] = forecasts(steps, other);
      for (int i = 0; i < kShares; ++i) slopes[share][i] -= now[i];
    }
    const double whole = determinant(slopes);
    for (int share = 0; share < kShares; ++share) {
      auto changed = slopes;
      changed[share] = missing;
      const double inverse = (1 + determinant(changed) / whole) / hardware.*kFitted[share];
      hardware.*kFitted[share] = inverse > 0 ? std::clamp(1 / inverse, kLeastShare, kMostShareOfMemory) : 1;
    }
  }
  const double most = std::max({kMostShare, hardware.products, hardware.attention});
  hardware.operations_per_second *= most;
  for (auto* share : {&hardware.products, &hardware.attention}) *share = std::max(kLeastShare, *share / most);
  return hardware;
}

}  // namespace lockstep::trainer::forecast
