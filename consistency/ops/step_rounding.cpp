#include "consistency/ops/step_rounding.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "consistency/bounds/error_bounds.h"
#include "consistency/bounds/spread.h"
#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

// Of what native numerics adds up in: losses in single, squares of gradients in double.
constexpr double kUnitOfLosses = 0x1p-24, kUnitOfSquares = 0x1p-53;

using Named = std::vector<StepRecord::Named>;

at::Tensor in_double(const at::Tensor& value) { return whole_of(local_shards(value)).to(c10::kDouble); }

double length(const at::Tensor& vector) { return vector.norm().item<double>(); }

std::vector<int64_t> place_of(int64_t flat, c10::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; flat /= sizes[d]) index[d] = flat % sizes[d];
  return index;
}

class Comparer {
 public:
  void tensors(const char* kind, const Named& exact, const Named& shaken, const Named& run) {
    LOCKSTEP_CHECK_EQ(exact.size(), run.size(), "{}s", kind);
    for (size_t i = 0; i < run.size(); ++i) {
      LOCKSTEP_CHECK_EQ(exact[i].name, run[i].name);
      auto found = tensor(in_double(exact[i].value), in_double(shaken[i].value), run[i].value);
      result.over_bound = std::max(result.over_bound, found.over_bound);
      if (found.agrees()) continue;
      found.kind = kind, found.name = run[i].name, found.reference_name = "in double";
      result.beyond.push_back(std::move(found));
    }
  }

  void scalar(const char* kind, double exact, double run, double allowed) {
    const double distance = std::abs(run - exact);
    const double over = share_of(distance, allowed);
    ++result.values;
    result.over_bound = std::max(result.over_bound, over);
    if (over <= 1) return;
    Difference difference;
    difference.kind = kind, difference.reference_name = "in double", difference.over_bound = over;
    difference.reference = exact, difference.candidate = run;
    difference.relative = distance / std::max(std::abs(exact), 1e-300);
    difference.wrong_elements = difference.elements = 1;
    result.beyond.push_back(std::move(difference));
  }

  /// What the optimizer was told. A scale for clipping follows the norm, the root of a mean of squares that the
  /// optimizer keeps follows its state; all else is a function of the job and the step.
  void scalars(const StepRecord& exact, const StepRecord& run, double of_norm, double of_state) {
    LOCKSTEP_CHECK_EQ(exact.scalars.size(), run.scalars.size(), "numbers of the optimizer");
    for (size_t i = 0; i < run.scalars.size(); ++i) {
      const auto& [name, value] = exact.scalars[i];
      LOCKSTEP_CHECK_EQ(name, run.scalars[i].name);
      const double left = exact.gradient_norm - of_norm;
      const double allowed = left > 0 ? value * (of_norm / left + 0x1p-50) : HUGE_VAL;
      const double of_root = value > 0 ? of_state / value + value * 0x1p-20 : HUGE_VAL;
      scalar(name.c_str(), value, run.scalars[i].value,
             name == "gradient_scale"  ? allowed
             : name == "measured_root" ? of_root
                                       : 0);
    }
  }

  Comparison result;

 private:
  /// Of what is allowed; above 1 whatever is not a number.
  static double share_of(double distance, double allowed) {
    const double share = distance > 0 || std::isnan(distance) ? distance / allowed : 0;
    return std::isnan(share) ? HUGE_VAL : share;
  }

  Difference tensor(const at::Tensor& exact, const at::Tensor& shaken, const at::Tensor& run) {
    const auto held = local_shards(run);
    Difference difference;
    difference.elements = exact.numel();
    if (exact.sizes() != c10::IntArrayRef(held.spec->sizes))
      return difference_of_sizes(held.spec->sizes, exact.sizes());
    double squares = 0, shaken_squares = 0, elements = 0;
    for (size_t r = 0; r < held.ranks.size(); ++r) {
      const auto expected = part_of(*held.spec, exact, held.ranks[r]);
      if (expected.numel() == 0) continue;
      const double shaking = length(part_of(*held.spec, shaken, held.ranks[r]) - expected);
      const double distance =
          compare_part(held, r, expected, largest_ratio_of_lengths(expected.numel()) * shaking, difference);
      squares += distance * distance, shaken_squares += shaking * shaking;
      elements += static_cast<double>(expected.numel());
    }
    // Of small parts chance says little: all of them together, copies counted once.
    const auto counted = static_cast<int64_t>(std::min(elements, static_cast<double>(exact.numel())));
    const double over = share_of(std::sqrt(squares), largest_ratio_of_lengths(counted) * std::sqrt(shaken_squares));
    if (difference.agrees() && over > 1) difference.wrong_elements = counted, difference.over_bound = over;
    difference.over_bound = std::max(difference.over_bound, over);
    if (difference.ranks.size() == held.ranks.size()) difference.ranks.clear();
    return difference;
  }

  /// The distance.
  double compare_part(const HeldShards& held, size_t r, const at::Tensor& expected, double allowed, Difference& found) {
    const auto part = held.shards[r].to(c10::kDouble);
    const auto distances = (part - expected).abs().nan_to_num(HUGE_VAL, HUGE_VAL, HUGE_VAL);
    const double distance = length(distances), over = share_of(distance, allowed);
    result.values += expected.numel();
    if (over > 1) {
      found.ranks.push_back(held.ranks[r]);
      const auto beyond = distances > allowed / std::sqrt(expected.numel());
      found.wrong_elements += std::max<int64_t>(beyond.sum().item<int64_t>(), 1);
    }
    if (over < found.over_bound || over <= 0) return distance;
    found.over_bound = over;
    const auto at = distances.reshape({-1}).argmax().item<int64_t>();
    found.index = place_of(at, expected.sizes());
    for (size_t d = 0; d < found.index.size(); ++d)
      found.index[d] += held.spec->layout.cut(held.ranks[r], static_cast<int>(d), held.spec->sizes[d]).start;
    found.reference = expected.reshape({-1})[at].item<double>();
    found.candidate = part.reshape({-1})[at].item<double>();
    found.relative = distances.max().item<double>() / std::max(expected.abs().max().item<double>(), 1e-300);
    return distance;
  }
};

/// How long the shaken step's distance may be, of all of them together.
struct Whole {
  double distance = 0, elements = 0, largest = 0;
};

Whole whole_of_all(const Named& exact, const Named& shaken) {
  double squares = 0;
  Whole whole;
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto expected = in_double(exact[i].value);
    squares += std::pow(length(in_double(shaken[i].value) - expected), 2);
    whole.elements += static_cast<double>(expected.numel());
    whole.largest = std::max(whole.largest, static_cast<double>(expected.numel()));
  }
  whole.distance = largest_ratio_of_lengths(static_cast<int64_t>(whole.elements)) * std::sqrt(squares);
  return whole;
}

/// Of a sum of so many numbers of one sign.
double rounded_sum(double elements, double unit, double sum) { return 2 * (elements + 3) * unit * sum; }

/// Of the same tokens, and not spread over ranks as parts of sums.
bool are_comparable(const Named& exact, const Named& run) {
  for (size_t m = 0; m < exact.size() && m < run.size(); ++m)
    if (exact[m].value.sizes() != run[m].value.sizes() || spec_of(run[m].value).any_partial) return false;
  return exact.size() == run.size();
}

}  // namespace

Comparison compare_within_roundings(const StepRecord& exact, const StepRecord& shaken, const StepRecord& run) {
  const PlainTensors guard;
  const at::NoGradGuard no_grad;
  Comparer comparer;
  comparer.scalar("valid tokens", exact.valid_tokens, run.valid_tokens, 0);
  if (are_comparable(exact.token_losses, run.token_losses))
    comparer.tensors("loss of each token", exact.token_losses, shaken.token_losses, run.token_losses);
  const auto losses = whole_of_all(exact.token_losses, shaken.token_losses);
  comparer.scalar(
      "loss", exact.loss, run.loss,
      losses.distance / std::sqrt(exact.valid_tokens) + rounded_sum(losses.elements, kUnitOfLosses, exact.loss));
  comparer.tensors("gradient", exact.gradients, shaken.gradients, run.gradients);
  const auto gradients = whole_of_all(exact.gradients, shaken.gradients);
  const double of_norm = gradients.distance + rounded_sum(gradients.largest, kUnitOfSquares, exact.gradient_norm);
  comparer.scalar("gradient norm", exact.gradient_norm, run.gradient_norm, of_norm);
  const auto state = whole_of_all(exact.optimizer, shaken.optimizer);
  comparer.scalars(exact, run, of_norm, state.distance / std::sqrt(std::max(state.elements, 1.0)));
  comparer.tensors("optimizer state", exact.optimizer, shaken.optimizer, run.optimizer);
  return std::move(comparer.result);
}

}  // namespace lockstep
