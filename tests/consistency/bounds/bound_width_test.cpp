// Each bound from both sides: LibTorch's own results are within it, and a fault that is small is not.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "consistency/bounds/error_bounds.h"
#include "fuzz/calls/sharded_calls.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

/// The least fault that every bound notices, as a share of the largest number of the call: bounds of sums of a hundred
/// numbers are below it. A product of two hundred 16-bit factors, made in 16 bits, may lose all of its digits.
constexpr double kFault = 0x1p-10, kShortFault = 4;

std::vector<c10::IValue> changed(const Stack& arguments, at::Tensor (*change)(const at::Tensor&)) {
  Stack all = arguments;
  for (auto& value : all)
    if (value.isTensor() && value.toTensor().is_floating_point()) value = change(value.toTensor());
  return all;
}

/// Drawn numbers have so few digits that their sums are exact.
at::Tensor with_all_digits(const at::Tensor& tensor) { return tensor * 0.97; }
at::Tensor as_double(const at::Tensor& tensor) { return tensor.to(c10::kDouble); }
at::Tensor as_magnitude(const at::Tensor& tensor) { return tensor.to(c10::kDouble).abs(); }

/// One call on LibTorch's own tensors, in its dtype and in double.
struct Trial {
  std::vector<at::Tensor> results, exact, allowed;
  double largest = 1;  ///< of operands and results
};

void note_largest(double& largest, const at::Tensor& tensor) {
  if (tensor.numel() == 0 || !tensor.is_floating_point()) return;
  largest = std::max(largest, tensor.to(c10::kDouble).abs().nan_to_num(0, 0, 0).max().item<double>());
}

Trial trial_of(const OpCase& op_case, c10::ScalarType dtype) {
  Inputs inputs(dtype, /*exact=*/false);
  auto call = make_call(op_case.op, op_case.draw(inputs));
  call.arguments = changed(call.arguments, with_all_digits);
  const auto arguments = changed(call.arguments, as_double), magnitudes = changed(call.arguments, as_magnitude);
  Trial trial;
  trial.results = run(call.op, call.arguments), trial.exact = run(call.op, arguments);
  if (trial.exact[0].numel() == 0) return {};
  const double stored_unit = dtype == c10::kBFloat16 ? 0x1p-8 : 0;
  const auto* bound = error_bound(*built_in_rules()->find(op_case.op));
  trial.allowed = bound->allowed({call.op.schema(), arguments, magnitudes, trial.exact, 0x1p-24, stored_unit, 0});
  for (size_t slot = 0; slot < call.slots.size(); ++slot) note_largest(trial.largest, call.tensor(slot));
  for (const auto& result : trial.exact) note_largest(trial.largest, result);
  return trial;
}

/// The results of both, where they are numbers.
/// False where the result has nothing to compare.
bool is_between(const Trial& trial, size_t r, double stored_unit, double fault) {
  const auto& exact = trial.exact[r];
  if (!exact.is_floating_point() || exact.numel() == 0) return false;
  const auto& allowed = trial.allowed.at(r);
  const auto stored = 1.01 * stored_unit * (exact.abs() + 2 * allowed) + allowed;
  // An infinite bound says that a part of the result may be too large for the dtype: anything may come of that.
  const auto is_number = exact.isfinite().logical_and(allowed.isfinite());
  const auto error = (trial.results[r].to(c10::kDouble) - exact).abs();
  const auto over = at::where(is_number, error / stored, at::zeros_like(error)).masked_fill(error == 0, 0);
  RC_LOG() << "result " << r << ": " << over.max().item<double>() << " of what is allowed\n";
  RC_ASSERT(over.max().item<double>() <= 1);
  const auto wide = at::where(is_number, stored / trial.largest, at::zeros_like(error)).max().item<double>();
  RC_LOG() << "result " << r << ": " << wide << " of the largest number is allowed\n";
  RC_ASSERT(wide < fault);
  return true;
}

bool is_bounded(const OpCase& op_case) {
  const auto* row = built_in_rules()->find(op_case.op);
  const auto* bound = row ? error_bound(*row) : nullptr;
  return bound && bound->allowed && !op_case.op.starts_with("mesh::") && !op_case.is(OpCase::kOwnPeer);
}

std::vector<OpCase> bounded_cases() {
  std::vector<OpCase> all;
  for (const auto& op_case : valued_cases())
    if (is_bounded(op_case)) all.push_back(op_case);
  return all;
}

class BoundWidth : public ::testing::TestWithParam<OpCase> {
 protected:
  void expect(c10::ScalarType dtype, double stored_unit, double fault) const {
    const auto& op_case = GetParam();
    const auto failure = failure_of_counted(op_case.op + " within its bound", op_case.op, case_count(40), [&] {
      const auto trial = trial_of(op_case, dtype);
      bool has_compared = false;
      for (size_t r = 0; r < trial.exact.size(); ++r) has_compared |= is_between(trial, r, stored_unit, fault);
      if (has_compared) ++compared_cases()[op_case.op];
    });
    if (!failure.empty()) FAIL() << failure;
  }
};

TEST_P(BoundWidth, OfSingleNumbersHoldsAndIsNarrow) { expect(c10::kFloat, 0, kFault); }
TEST_P(BoundWidth, OfShortNumbersHoldsAndIsNarrow) {
  if (!GetParam().is(OpCase::kWide)) expect(c10::kBFloat16, 0x1p-8, kShortFault);
}

INSTANTIATE_TEST_SUITE_P(Rows, BoundWidth, ::testing::ValuesIn(bounded_cases()), test_name);

}  // namespace
}  // namespace lockstep::testing
