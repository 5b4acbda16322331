#include "rng/distribution.h"

#include <cmath>

#include "core/error.h"

namespace lockstep::rng {

int64_t size_of(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kFloat64:
    case ScalarKind::kInt64:
      return 8;
    case ScalarKind::kFloat32:
      return 4;
    case ScalarKind::kBFloat16:
    case ScalarKind::kFloat16:
      return 2;
    case ScalarKind::kBool:
      return 1;
  }
  fail<InternalError>("unknown scalar kind {}", static_cast<int>(kind));
}

std::string_view name_of(ScalarKind kind) {
  constexpr std::string_view kNames[] = {"float32", "float64", "bfloat16", "float16", "int64", "bool"};
  return kNames[static_cast<int>(kind)];
}

Distribution uniform(double low, double high) {
  if (!(std::isfinite(low) && std::isfinite(high) && std::isfinite(high - low) && low < high)) {
    fail<BadInput>("uniform [{}, {}): expected finite bounds, low < high", low, high);
  }
  return {.kind = Distribution::Kind::kUniform, .low = low, .high = high};
}

Distribution normal(double mean, double deviation) {
  if (!(std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0)) {
    fail<BadInput>("normal with mean {} and standard deviation {}: expected finite values, deviation >= 0", mean,
                   deviation);
  }
  return {.kind = Distribution::Kind::kNormal, .mean = mean, .deviation = deviation};
}

Distribution truncated_normal(double mean, double deviation, double low, double high) {
  if (!(std::isfinite(mean) && std::isfinite(deviation) && deviation > 0 && low < high)) {
    fail<BadInput>(
        "truncated normal with mean {}, standard deviation {} on [{}, {}]: expected deviation > 0, low < high", mean,
        deviation, low, high);
  }
  return {.kind = Distribution::Kind::kTruncatedNormal, .low = low, .high = high, .mean = mean, .deviation = deviation};
}

Distribution bernoulli(double probability, double value) {
  if (!(probability >= 0 && probability <= 1 && std::isfinite(value))) {
    fail<BadInput>("bernoulli with probability {} of {}: expected a probability in [0, 1] and a finite value",
                   probability, value);
  }
  return {.kind = Distribution::Kind::kBernoulli, .probability = probability, .value = value};
}

Distribution dropout_mask(double keep) {
  if (!(keep > 0 && keep <= 1)) fail<BadInput>("dropout mask: keep probability {} is not in (0, 1]", keep);
  return bernoulli(keep, 1 / keep);
}

Distribution integers(int64_t first, int64_t end) {
  if (first >= end) fail<BadInput>("integers in [{}, {}): the range is empty", first, end);
  return {.kind = Distribution::Kind::kIntegers, .first = first, .end = end};
}

}  // namespace lockstep::rng
