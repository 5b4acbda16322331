#pragma once
#include <cmath>

#include "core/error.h"
#include "rng/distribution.h"
#include "rng/draws.h"
#include "rng/representable.h"

/// From (dtype, distribution) to the types that the kernels are made of; used by the CPU and CUDA fills.
namespace lockstep::rng {

template <class T>
UniformDraw<T> resolve_uniform(ScalarKind kind, const Distribution& d) {
  const double least = least_from(kind, d.low), greatest = greatest_below(kind, d.high);
  const auto span = static_cast<T>(d.high - d.low);
  if (!(least <= greatest && std::isfinite(span))) {
    fail<BadInput>("uniform [{}, {}) holds no {} value or is too wide for it", d.low, d.high, name_of(kind));
  }
  return {{}, static_cast<T>(d.low), span, static_cast<T>(least), static_cast<T>(greatest)};
}

template <class T>
NormalDraw<T> resolve_normal(const Distribution& d) {
  return {{}, static_cast<T>(d.mean), static_cast<T>(d.deviation)};
}

/// Mirrors the interval so that most of it lies below the mean, where probabilities keep their relative precision.
template <class T>
TruncatedNormalDraw<T> resolve_truncated_normal(ScalarKind kind, const Distribution& d) {
  const double from = (d.low - d.mean) / d.deviation, to = (d.high - d.mean) / d.deviation;
  const bool mirror = from + to > 0;
  const double lower = mirror ? -to : from, upper = mirror ? -from : to;
  const double below = normal_lower_tail(lower);
  const double span = (upper <= 0 ? normal_lower_tail(upper) : 1.0 - normal_lower_tail(-upper)) - below;
  const double least = least_from(kind, d.low), greatest = greatest_up_to(kind, d.high);
  if (!(span > 1e-15 && least <= greatest)) {
    fail<BadInput>("truncated normal with mean {}, standard deviation {}: [{}, {}] has probability {:.2g} in {}",
                   d.mean, d.deviation, d.low, d.high, span, name_of(kind));
  }
  const double scale = mirror ? -d.deviation : d.deviation;
  return {{}, d.mean, scale, below, span, static_cast<T>(least), static_cast<T>(greatest)};
}

/// The probability is rounded to a multiple of 2^-32.
template <class T>
BernoulliDraw<T> resolve_bernoulli(const Distribution& d) {
  const auto threshold = static_cast<uint64_t>(std::nearbyint(d.probability * 0x1p32));
  if (threshold == 0) return {0, T{}};
  return {static_cast<uint32_t>(threshold - 1), static_cast<T>(d.value)};
}

inline IntegersDraw resolve_integers(const Distribution& d) {
  return {static_cast<uint64_t>(d.first), static_cast<uint64_t>(d.end) - static_cast<uint64_t>(d.first)};
}

/// Calls `visit(draw)` for a floating distribution computed in T.
template <class T, class Visit>
void visit_floating(ScalarKind kind, const Distribution& d, Visit&& visit) {
  switch (d.kind) {
    case Distribution::Kind::kUniform:
      return visit(resolve_uniform<T>(kind, d));
    case Distribution::Kind::kNormal:
      return visit(resolve_normal<T>(d));
    case Distribution::Kind::kTruncatedNormal:
      return visit(resolve_truncated_normal<T>(kind, d));
    case Distribution::Kind::kBernoulli:
      return visit(resolve_bernoulli<T>(d));
    case Distribution::Kind::kIntegers:
      fail<BadInput>("random integers are drawn as int64, not {}", name_of(kind));
  }
}

/// Calls `visit(draw, store)`: `draw` turns words into values, `store` into what memory holds.
template <class Visit>
void visit_draw(ScalarKind kind, const Distribution& d, Visit&& visit) {
  switch (kind) {
    case ScalarKind::kFloat32:
      return visit_floating<float>(kind, d, [&](const auto& draw) { visit(draw, AsIs<float>{}); });
    case ScalarKind::kFloat64:
      return visit_floating<double>(kind, d, [&](const auto& draw) { visit(draw, AsIs<double>{}); });
    case ScalarKind::kBFloat16:
      return visit_floating<float>(kind, d, [&](const auto& draw) { visit(draw, AsBFloat16{}); });
    case ScalarKind::kFloat16:
      return visit_floating<float>(kind, d, [&](const auto& draw) { visit(draw, AsHalf{}); });
    case ScalarKind::kInt64:
      if (d.kind == Distribution::Kind::kIntegers) return visit(resolve_integers(d), AsIs<int64_t>{});
      break;
    case ScalarKind::kBool:
      if (d.kind == Distribution::Kind::kBernoulli) return visit(resolve_bernoulli<uint8_t>(d), AsIs<uint8_t>{});
      break;
  }
  fail<BadInput>("{} cannot hold this distribution: int64 holds integers, bool holds bernoulli", name_of(kind));
}

}  // namespace lockstep::rng
