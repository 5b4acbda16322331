#include "consistency/ops/rounding.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <limits>

#include "consistency/bounds/error_bounds.h"
#include "consistency/place_on_mesh.h"
#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Of a complex dtype that of its parts.
c10::ScalarType real(c10::ScalarType dtype) { return c10::isComplexType(dtype) ? c10::toRealValueType(dtype) : dtype; }

double short_unit(c10::ScalarType dtype) {
  return real(dtype) == c10::kBFloat16 ? 0x1p-8 : real(dtype) == c10::kHalf ? 0x1p-11 : 0;
}

bool is_short(c10::ScalarType dtype) { return short_unit(dtype) > 0; }

/// 16-bit ops compute in fp32. What doubles are compared with is rounded as they are.
double arithmetic_unit(c10::ScalarType dtype) { return real(dtype) == c10::kDouble ? 0x1p-52 : 0x1p-24; }

double largest_number(c10::ScalarType dtype) {
  if (real(dtype) == c10::kHalf) return 65504;
  return real(dtype) == c10::kDouble ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

/// With what rounds to 16 bits: once where it is whole, and each part of an unfinished sum. Near the largest number,
/// where what leads to it may be too large, nothing is said.
at::Tensor with_storage(at::Tensor allowed, const at::Tensor& exact, const HeldShards& result) {
  const PlainTensors guard;
  const auto dtype = result.spec->dtype;
  const auto parts = result.spec->any_partial ? whole_of(magnitudes(result)) : exact.abs();
  if (is_short(dtype)) allowed = allowed + 1.01 * short_unit(dtype) * (exact.abs() + 2 * allowed + parts);
  const auto is_small = parts + exact.abs() + allowed <= largest_number(dtype) / 4;
  return at::where(is_small, allowed, at::full({}, kInfinity, allowed.options()));
}

/// What is known of factories is what is known of their rows, if they have one. Of no row: equal bits.
ErrorBound bound_of(const OpEvent& event) {
  const auto* bound = event.plan.rule ? error_bound(*event.plan.rule) : nullptr;
  return bound ? *bound : ErrorBound{};
}

/// The coarsest float among them.
c10::ScalarType coarsest(const std::vector<c10::ScalarType>& dtypes) {
  auto coarsest = c10::kDouble;
  bool has_float = false;
  for (const auto dtype : dtypes) {
    if (!c10::isFloatingType(dtype)) continue;
    has_float = true;
    const bool is_coarser =
        short_unit(dtype) > short_unit(coarsest) || arithmetic_unit(dtype) > arithmetic_unit(coarsest);
    if (is_coarser) coarsest = dtype;
  }
  return has_float ? coarsest : c10::kFloat;
}

c10::ScalarType computed_in(const std::vector<at::Tensor>& values) {
  std::vector<c10::ScalarType> dtypes;
  for (const auto& value : values) dtypes.push_back(value.scalar_type());
  return coarsest(dtypes);
}

/// As its operands declare.
c10::ScalarType computed_in(const OpEvent& event) {
  std::vector<c10::ScalarType> dtypes;
  for (const auto& operand : sharded_operands(event.arguments)) dtypes.push_back(spec_of(operand.tensor).dtype);
  return coarsest(dtypes);
}

/// The arguments of an op with plain tensors in place of its sharded ones.
std::vector<c10::IValue> with_operands(const OpEvent& event, const std::vector<at::Tensor>& tensors) {
  std::vector<c10::IValue> arguments(event.arguments.begin(), event.arguments.end());
  size_t next = 0;
  for (const auto& operand : sharded_operands(event.arguments)) set_slot(arguments, operand.slot, tensors.at(next++));
  return arguments;
}

/// Operands in double, and their magnitudes.
struct Doubles {
  std::vector<at::Tensor> exact, magnitudes;
};

Doubles doubles_of(const TakenOp& op) {
  Doubles doubles;
  for (size_t o = 0; o < op.values.size(); ++o) {
    const auto& value = op.values[o];
    const auto& sum = op.operands.sums()[o];
    const bool is_float = value.is_floating_point();
    doubles.exact.push_back(sum.exact.defined() ? sum.exact : is_float ? value.to(c10::kDouble) : value);
    doubles.magnitudes.push_back(sum.exact.defined() ? sum.magnitude : is_float ? doubles.exact[o].abs() : value);
  }
  return doubles;
}

/// Of rows that round nothing: the parts of a sum are finished by others than one device's op.
std::vector<at::Tensor> of_finished_sums(const ExactCall& call, const std::vector<HeldShards>& results) {
  std::vector<at::Tensor> allowed;
  for (const auto& result : results) allowed.push_back(call.rounded(1, whole_of(magnitudes(result))));
  return allowed;
}

/// `dtype`: what the op computes with.
std::vector<at::Tensor> allowed_errors(const TakenOp& op, c10::ScalarType dtype, const std::vector<HeldShards>& results,
                                       const Doubles& doubles, const std::vector<at::Tensor>& exact) {
  const PlainTensors guard;
  const auto arguments = with_operands(op.event, doubles.exact),
             magnitudes = with_operands(op.event, doubles.magnitudes);
  const auto* mesh = mesh_of(op.event.plan);
  const bool by_tensor_cores = mesh && mesh->world().shard_device().is_cuda() && !mesh->world().canonical();
  const ExactCall call{
      op.event.op.schema(),           arguments,      magnitudes, exact, arithmetic_unit(dtype), short_unit(dtype),
      op.operands.added_on_the_way(), by_tensor_cores};
  const auto bound = bound_of(op.event);
  return bound.allowed ? bound.allowed(call) : of_finished_sums(call, results);
}

bool rounds(const TakenOp& op) { return bound_of(op.event).allowed || op.operands.has_sums(); }

std::vector<Difference> differences_from(const std::vector<at::Tensor>& expected,
                                         const std::vector<HeldShards>& results) {
  std::vector<Difference> all;
  for (size_t r = 0; r < results.size(); ++r) all.push_back(difference_of(results[r], expected.at(r), 0));
  return all;
}

Difference difference_of_float(const HeldShards& result, const at::Tensor& expected,
                               const std::vector<at::Tensor>& allowed, size_t r) {
  if (!expected.is_floating_point()) return difference_of(result, expected, kBits);
  return difference_within(result, expected, with_storage(allowed.at(r), expected, result));
}

Difference in_double(Difference difference) {
  difference.reference_name = "in double";
  return difference;
}

}  // namespace

namespace {

bool has_complex(const Plan& plan) {
  const auto is_complex = [](const TensorSpec* spec) { return spec && c10::isComplexType(spec->dtype); };
  return std::ranges::any_of(plan.given, is_complex) || std::ranges::any_of(plan.results, is_complex);
}

/// Bounds are derived for real numbers: of complex ones only what moves numbers, and computes none, is compared.
bool moves_complex_numbers(const Plan& plan, const ErrorBound& bound) {
  const std::string_view op = plan.rule->op;
  const bool computes = bound.allowed || op == "abs" || op == "sgn";
  const bool goes_on_with_sums =
      std::ranges::any_of(plan.wanted, [](const TensorSpec* spec) { return spec && spec->any_partial; });
  return !computes && !goes_on_with_sums;
}

}  // namespace

bool has_bound(const OpEvent& event) {
  if (!event.plan.rule) return true;
  const auto* bound = error_bound(*event.plan.rule);
  return bound && (!has_complex(event.plan) || moves_complex_numbers(event.plan, *bound));
}

bool are_close_enough(const TakenOp& op, const std::vector<HeldShards>& results) {
  const PlainTensors guard;
  const auto bound = bound_of(op.event);
  const auto dtype = computed_in(op.values);
  at::Tensor allowed;
  if (bound.roughly && !is_short(dtype) && !op.operands.has_sums()) {
    const auto arguments = with_operands(op.event, op.values);
    const auto ranks = static_cast<double>(results.at(0).spec->layout.mesh().ranks().size());
    allowed = bound.roughly({op.event.op.schema(), arguments, {}, {}, arithmetic_unit(dtype), 0, ranks});
  }
  for (size_t r = 0; r < results.size(); ++r)
    if (!are_close(results[r], op.expected[r], allowed)) return false;
  return true;
}

namespace {

/// What the op gives in double, and how far its results may be from that.
struct Exact {
  std::vector<at::Tensor> results, allowed;
};

Exact exact_of(const TakenOp& op, const std::vector<HeldShards>& results, OneDevice& device) {
  const auto doubles = doubles_of(op);
  const auto exact = device.run(op.event, doubles.exact);
  return {exact, allowed_errors(op, computed_in(op.values), results, doubles, exact)};
}

}  // namespace

std::vector<Difference> differences_beyond_rounding(const TakenOp& op, const std::vector<HeldShards>& results,
                                                    OneDevice& device) {
  if (!rounds(op)) return differences_from(op.expected, results);
  const auto [exact, allowed] = exact_of(op, results, device);
  std::vector<Difference> all;
  for (size_t r = 0; r < results.size(); ++r)
    all.push_back(in_double(difference_of_float(results[r], exact[r], allowed, r)));
  return all;
}

std::vector<Difference> differences_of_rounded(const TakenOp& op, const std::vector<HeldShards>& results,
                                               OneDevice& device) {
  if (!rounds(op)) return differences_from(op.expected, results);
  auto [exact, allowed] = exact_of(op, results, device);
  std::vector<Difference> all;
  for (size_t r = 0; r < results.size(); ++r) {
    if (allowed.at(r).defined()) allowed[r] = allowed[r] * 2;
    const auto& expected = op.expected.at(r);
    all.push_back(difference_of_float(results[r], expected.is_floating_point() ? expected.to(c10::kDouble) : expected,
                                      allowed, r));
  }
  return all;
}

namespace {

/// Of a cast: what one that stores doubles does not round.
at::Tensor allowed_to_cast(const OpEvent& event, const HeldShards& result, const at::Tensor& exact) {
  const auto from = computed_in(event), to = result.spec->dtype;
  if (!exact.is_floating_point() || coarsest({from, to}) == from) return {};
  return rounded(1, is_short(to) ? short_unit(to) : arithmetic_unit(to), exact.abs());
}

}  // namespace

std::vector<at::Tensor> allowed_as_declared(const OpEvent& event, const TakenOperands& operands,
                                            const std::vector<HeldShards>& results) {
  const auto values = operands.values(event);
  std::vector<at::Tensor> exact;
  for (const auto& result : results) exact.push_back(whole_of(result));
  const TakenOp op{event, operands, values, exact};
  std::vector<at::Tensor> allowed(results.size());
  if (!rounds(op)) {
    for (size_t r = 0; r < results.size(); ++r) allowed[r] = allowed_to_cast(event, results[r], exact[r]);
    return allowed;
  }
  const auto errors = allowed_errors(op, computed_in(event), results, doubles_of(op), exact);
  for (size_t r = 0; r < results.size(); ++r)
    if (exact[r].is_floating_point() && errors.at(r).defined())
      allowed[r] = with_storage(errors[r], exact[r], results[r]);
  return allowed;
}

Difference difference_beyond_rounding(const MoveEvent& event, const HeldShards& before, const HeldShards& after) {
  const PlainTensors guard;
  const auto exact = whole_of(in_doubles(before)), magnitude = whole_of(magnitudes(before));
  const auto members = static_cast<double>(event.before.layout.mesh().axis_size(event.axis));
  const auto allowed = rounded(members + 1, arithmetic_unit(event.after.dtype), magnitude);
  return in_double(difference_within(after, exact, with_storage(allowed, exact, after)));
}

}  // namespace lockstep
