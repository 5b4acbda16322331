#include "consistency/bounds/spread.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kLogOfChance = -40 * 0.6931471805599453;

/// Where n / 2 (log x + 1 - x), which falls away from x = 1, comes to the logarithm of the chance between the two.
double quantile(double elements, double inner, double outer) {
  for (int halving = 0; halving < 200; ++halving) {
    const double middle = outer < 1 ? std::sqrt(inner * outer) : (inner + outer) / 2;
    const bool is_likely = elements / 2 * (std::log(middle) + 1 - middle) > kLogOfChance;
    (is_likely ? inner : outer) = middle;
  }
  return outer;
}

}  // namespace

double largest_ratio_of_lengths(int64_t elements) {
  const double n = static_cast<double>(std::max<int64_t>(elements, 1));
  return std::sqrt(quantile(n, 1, 200) / quantile(n, 1, 1e-30));
}

}  // namespace lockstep
