#include "trainer/optim/newton_schulz.h"

#include <ATen/Functions.h>

namespace lockstep::trainer {
namespace {

constexpr int kSteps = 5;
constexpr double kFirst = 3.4445, kThird = -4.7750, kFifth = 2.0315;
constexpr double kEpsilon = 1e-7;

}  // namespace

at::Tensor orthogonalised(const at::Tensor& matrix) {
  const bool is_tall = matrix.size(0) > matrix.size(1);
  auto x = is_tall ? matrix.t().contiguous() : matrix;
  x = at::div(x, at::add(at::sqrt(at::sum(at::mul(x, x))), kEpsilon));
  for (int step = 0; step < kSteps; ++step) {
    const auto square = at::mm(x, x.t());
    const auto polynomial = at::add(at::mul(square, kThird), at::mm(square, square), kFifth);
    x = at::add(at::mul(x, kFirst), at::mm(polynomial, x));
  }
  return is_tall ? x.t().contiguous() : x;
}

}  // namespace lockstep::trainer
