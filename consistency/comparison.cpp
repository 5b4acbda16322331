#include "consistency/comparison.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <bit>
#include <cmath>

#include "core/error.h"

namespace lockstep {
namespace {

double relative(double reference, double candidate, double scale) {
  if (std::isnan(reference) && std::isnan(candidate)) return 0;
  if (!(reference < candidate) && !(candidate < reference) && !std::isnan(reference + candidate)) return 0;
  const double difference = std::abs(candidate - reference) / std::max(scale, 1e-300);
  return std::isnan(difference) ? HUGE_VAL : difference;
}

std::vector<int64_t> unravel(int64_t flat, c10::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = flat % sizes[d];
    flat /= sizes[d];
  }
  return index;
}

/// Elementwise |candidate - reference| over the largest finite |reference|; infinite where exactly one is NaN.
at::Tensor relative_errors(const at::Tensor& reference, const at::Tensor& candidate) {
  const auto scale =
      at::where(reference.isfinite(), reference.abs(), at::zeros_like(reference)).max().clamp_min(1e-300);
  const auto agree = at::logical_or(reference == candidate, at::logical_and(reference.isnan(), candidate.isnan()));
  auto errors = ((candidate - reference).abs() / scale).nan_to_num(HUGE_VAL, HUGE_VAL, HUGE_VAL);
  return errors.masked_fill(agree, 0);
}

Difference worst_of(const std::string& kind, const StepRecord::Named& reference, const StepRecord::Named& candidate,
                    double tolerance) {
  Difference worst{kind, reference.name, 0, {}, 0, 0, 0, reference.value.numel()};
  if (reference.value.numel() == 0) return worst;
  const auto left = reference.value.to(c10::kDouble), right = candidate.value.to(c10::kDouble);
  const auto errors = relative_errors(left, right).reshape({-1});
  const auto at = errors.argmax().item<int64_t>();
  worst.relative = errors[at].item<double>();
  worst.index = unravel(at, left.sizes());
  worst.reference = left.reshape({-1})[at].item<double>();
  worst.candidate = right.reshape({-1})[at].item<double>();
  worst.wrong_elements = (errors > tolerance).sum().item<int64_t>();
  return worst;
}

template <class T, class Bits>
int64_t differing_bits_as(const at::Tensor& reference, const at::Tensor& candidate) {
  const auto left = reference.contiguous(), right = candidate.contiguous();
  const auto *a = left.const_data_ptr<T>(), *b = right.const_data_ptr<T>();
  int64_t count = 0;
  for (int64_t i = 0; i < left.numel(); ++i)
    if (!(std::isnan(a[i]) && std::isnan(b[i])))
      count += std::popcount(static_cast<Bits>(std::bit_cast<Bits>(a[i]) ^ std::bit_cast<Bits>(b[i])));
  return count;
}

int64_t differing_bits(const at::Tensor& reference, const at::Tensor& candidate) {
  LOCKSTEP_CHECK(reference.scalar_type() == candidate.scalar_type(), "{} and {}",
                 c10::toString(reference.scalar_type()), c10::toString(candidate.scalar_type()));
  if (reference.scalar_type() == c10::kDouble) return differing_bits_as<double, uint64_t>(reference, candidate);
  return differing_bits_as<float, uint32_t>(reference.to(c10::kFloat), candidate.to(c10::kFloat));
}

/// How a comparer tells equal values from different ones.
constexpr double kBits = -1;

class Comparer {
 public:
  /// `tolerance`: relative, or kBits.
  explicit Comparer(double tolerance) : tolerance_(tolerance) {}

  void scalar(const char* kind, double reference, double candidate, double& worst) {
    const double error = relative(reference, candidate, std::abs(reference));
    worst = std::max(worst, error);
    if (is_beyond(error, at::scalar_tensor(reference, at::kDouble), at::scalar_tensor(candidate, at::kDouble)))
      result.beyond.push_back({kind, "", error, {}, reference, candidate, 1, 1});
  }

  void tensors(const char* kind, const std::vector<StepRecord::Named>& reference,
               const std::vector<StepRecord::Named>& candidate, double& worst) {
    LOCKSTEP_CHECK_EQ(reference.size(), candidate.size(), "{}s", kind);
    for (size_t i = 0; i < reference.size(); ++i) {
      LOCKSTEP_CHECK_EQ(reference[i].name, candidate[i].name);
      const auto difference = worst_of(kind, reference[i], candidate[i], std::max(tolerance_, 0.0));
      worst = std::max(worst, difference.relative);
      if (is_beyond(difference.relative, reference[i].value, candidate[i].value)) result.beyond.push_back(difference);
    }
  }

  Comparison result;

 private:
  bool is_beyond(double error, const at::Tensor& reference, const at::Tensor& candidate) {
    if (tolerance_ >= 0) return error > tolerance_;
    const auto bits = differing_bits(reference, candidate);
    result.differing_bits += bits;
    return bits > 0;
  }

  double tolerance_;
};

}  // namespace

std::string Difference::text() const {
  if (name.empty())
    return fmt::format("{} = {:.10g}, one device: {:.10g} (relative {:.1e})", kind, candidate, reference, relative);
  std::string place;
  for (const int64_t i : index) place += fmt::format("{}{}", place.empty() ? "" : ", ", i);
  return fmt::format("{} of {}[{}] = {:.10g}, one device: {:.10g} (relative {:.1e}; {} of {} elements wrong)", kind,
                     name, place, candidate, reference, relative, wrong_elements, elements);
}

namespace {

Comparison run(Comparer comparer, const StepRecord& reference, const StepRecord& candidate) {
  const at::NoGradGuard no_grad;
  comparer.scalar("loss", reference.loss, candidate.loss, comparer.result.loss);
  comparer.tensors("gradient", reference.gradients, candidate.gradients, comparer.result.gradient);
  comparer.scalar("gradient norm", reference.gradient_norm, candidate.gradient_norm, comparer.result.gradient);
  comparer.tensors("parameter", reference.parameters, candidate.parameters, comparer.result.parameter);
  comparer.tensors("optimizer state", reference.optimizer, candidate.optimizer, comparer.result.parameter);
  return std::move(comparer.result);
}

}  // namespace

Comparison compare(const StepRecord& reference, const StepRecord& candidate, double tolerance) {
  return run(Comparer(tolerance), reference, candidate);
}

Comparison compare_bits(const StepRecord& reference, const StepRecord& candidate) {
  return run(Comparer(kBits), reference, candidate);
}

}  // namespace lockstep
