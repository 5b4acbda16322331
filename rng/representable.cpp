#include "rng/representable.h"

#include <cmath>
#include <limits>

#include "core/elementary/half.h"
#include "core/error.h"

namespace lockstep::rng {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The neighbour of a 16-bit floating-point value: sign and magnitude as an integer, one up or down.
uint16_t neighbour(uint16_t bits, bool up) {
  const int magnitude = bits & 0x7fff;
  const int moved = ((bits & 0x8000) != 0 ? -magnitude : magnitude) + (up ? 1 : -1);
  return static_cast<uint16_t>(moved < 0 ? 0x8000 | -moved : moved);
}

/// A value of `kind` next to x or x itself.
double near(ScalarKind kind, double x) {
  switch (kind) {
    case ScalarKind::kFloat64:
      return x;
    case ScalarKind::kFloat32:
      return static_cast<double>(static_cast<float>(x));
    case ScalarKind::kBFloat16:
      return static_cast<double>(elementary::from_bfloat16(elementary::to_bfloat16(static_cast<float>(x))));
    case ScalarKind::kFloat16:
      return static_cast<double>(elementary::from_half(elementary::to_half(static_cast<float>(x))));
    default:
      fail<InternalError>("{} has no floating-point neighbours", name_of(kind));
  }
}

/// The next value of `kind` from one of its values.
double next(ScalarKind kind, double value, bool up) {
  if (std::isinf(value) && (value > 0) == up) return value;
  const double target = up ? kInfinity : -kInfinity;
  const auto single = static_cast<float>(value);
  switch (kind) {
    case ScalarKind::kFloat64:
      return std::nextafter(value, target);
    case ScalarKind::kBFloat16:
      return static_cast<double>(elementary::from_bfloat16(neighbour(elementary::to_bfloat16(single), up)));
    case ScalarKind::kFloat16:
      return static_cast<double>(elementary::from_half(neighbour(elementary::to_half(single), up)));
    default:
      return static_cast<double>(std::nextafter(single, static_cast<float>(target)));
  }
}

}  // namespace

double least_from(ScalarKind kind, double x) {
  double value = near(kind, x);
  while (value < x) value = next(kind, value, true);
  return value;
}

double greatest_up_to(ScalarKind kind, double x) {
  double value = near(kind, x);
  while (value > x) value = next(kind, value, false);
  return value;
}

double greatest_below(ScalarKind kind, double x) {
  double value = near(kind, x);
  while (value >= x) value = next(kind, value, false);
  return value;
}

}  // namespace lockstep::rng
