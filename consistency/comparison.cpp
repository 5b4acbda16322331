#include "consistency/comparison.h"

#include <ATen/Functions.h>

#include <bit>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

double relative_error(double reference, double candidate) {
  if (std::equal_to<>()(reference, candidate) || (std::isnan(reference) && std::isnan(candidate))) return 0;
  const double error = std::abs(candidate - reference) / std::max(std::abs(reference), 1e-300);
  return std::isnan(error) ? HUGE_VAL : error;
}

/// Of a reference, which lives here with all its ranks.
at::Tensor plain(const at::Tensor& value) {
  if (!is_sharded(value)) return value;
  const auto held = local_shards(value);
  return held.ranks.size() == 1 ? held.shards[0] : whole_of(held);
}

/// The reference may be of another domain: what a float32 state is in float64 is that state.
Difference compare_values(const at::Tensor& reference, const at::Tensor& candidate, double tolerance) {
  const PlainTensors guard;
  if (!is_sharded(candidate)) return difference_of(candidate, plain(reference), tolerance);
  const auto held = local_shards(candidate);
  auto expected = plain(reference);
  if (!held.shards.empty()) expected = expected.to(held.shards[0].scalar_type());
  return difference_of(held, expected, tolerance);
}

class Comparer {
 public:
  /// `tolerance`: relative, or kBits.
  explicit Comparer(double tolerance) : tolerance_(tolerance) {}

  void scalar(const std::string& kind, double reference, double candidate, double& worst) {
    const double error = relative_error(reference, candidate);
    worst = std::max(worst, error);
    const auto bits = std::popcount(std::bit_cast<uint64_t>(reference) ^ std::bit_cast<uint64_t>(candidate));
    const bool both_nan = std::isnan(reference) && std::isnan(candidate);
    ++result.values;
    if (both_nan || (tolerance_ < 0 ? bits == 0 : error <= tolerance_)) return;
    if (tolerance_ < 0) result.differing_bits += bits;
    Difference difference;
    difference.kind = kind, difference.relative = error;
    difference.reference = reference, difference.candidate = candidate;
    difference.wrong_elements = difference.elements = 1;
    result.beyond.push_back(std::move(difference));
  }

  void scalars(const std::vector<StepRecord::Scalar>& reference, const std::vector<StepRecord::Scalar>& candidate) {
    LOCKSTEP_CHECK_EQ(reference.size(), candidate.size(), "scalars");
    double unused = 0;
    for (size_t i = 0; i < reference.size(); ++i) {
      LOCKSTEP_CHECK_EQ(reference[i].name, candidate[i].name);
      scalar(reference[i].name, reference[i].value, candidate[i].value, unused);
    }
  }

  void tensors(const char* kind, const std::vector<StepRecord::Named>& reference,
               const std::vector<StepRecord::Named>& candidate, double& worst) {
    LOCKSTEP_CHECK_EQ(reference.size(), candidate.size(), "{}s", kind);
    for (size_t i = 0; i < reference.size(); ++i) {
      LOCKSTEP_CHECK_EQ(reference[i].name, candidate[i].name);
      auto difference = compare_values(reference[i].value, candidate[i].value, tolerance_);
      worst = std::max(worst, difference.relative);
      result.differing_bits += difference.differing_bits;
      result.values += difference.elements;
      if (difference.agrees()) continue;
      difference.kind = kind, difference.name = reference[i].name;
      result.beyond.push_back(std::move(difference));
    }
  }

  Comparison result;

 private:
  double tolerance_;
};

}  // namespace

Comparison compare(const StepRecord& reference, const StepRecord& candidate, double tolerance) {
  Comparer comparer(tolerance);
  auto& result = comparer.result;
  double unused = 0;
  comparer.scalar("valid tokens", reference.valid_tokens, candidate.valid_tokens, unused);
  comparer.scalar("loss", reference.loss, candidate.loss, result.loss);
  comparer.tensors("gradient", reference.gradients, candidate.gradients, result.gradient);
  comparer.scalar("gradient norm", reference.gradient_norm, candidate.gradient_norm, result.gradient);
  comparer.scalars(reference.scalars, candidate.scalars);
  comparer.tensors("parameter", reference.parameters, candidate.parameters, result.parameter);
  comparer.tensors("optimizer state", reference.optimizer, candidate.optimizer, result.parameter);
  return std::move(result);
}

}  // namespace lockstep
