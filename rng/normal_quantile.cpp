#include "rng/normal_quantile.h"

namespace lockstep::rng {

double normal_lower_tail(double z) {
  const double x = -z;
  const double density = 0x1.9884533d43651p-2 * elementary::exp(-0.5 * x * x);
  if (x < 3.0) {
    double term = x, sum = x;
    for (int k = 3; k < 200; k += 2) {
      term *= x * x / k;
      sum += term;
    }
    return 0.5 - density * sum;
  }
  double fraction = x;
  for (int k = 200; k > 0; --k) fraction = x + k / fraction;
  return density / fraction;
}

}  // namespace lockstep::rng
