// Ops that sum, average or maximise over dimensions: a cut of a reduced dimension leaves a Partial.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <limits>

#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

OpSharding reduce_over(const Call& call, const std::vector<int>& dims, bool keep) {
  OpSharding sharding;
  sharding.operands.resize(1);
  sharding.results.assign(call.results.size(), {});
  for (int d = 0; d < call.dims(0); ++d) {
    sharding.operands[0].push_back({d});
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    for (auto& result : sharding.results)
      if (!reduced)
        result.push_back({d});
      else if (keep)
        result.push_back({});
  }
  return sharding;
}

OpSharding over_all(const Call& call) { return reduce_over(call, all_dimensions(call.dims(0)), false); }
/// Two integers for all elements.
OpSharding to_integers(const Call& call) {
  auto sharding = over_all(call);
  sharding.results = {{{}}};
  return sharding;
}
OpSharding over_dims(const Call& call) { return reduce_over(call, call.dimensions("dim", call.dims(0)), call.argument("keepdim").toBool()); }

/// Sum of the shard divided by the *global* count.
void local_mean(const LocalCall& call, torch::jit::Stack& stack) {
  const auto input = stack[0].toTensor();
  const bool all = call.op.operator_name().overload_name.empty();
  std::vector<int64_t> dims;
  if (!all && !call.argument(stack, "dim").isNone()) dims = call.argument(stack, "dim").toIntVector();
  const bool keep = !all && call.argument(stack, "keepdim").toBool();
  const auto& spec = *call.plan.wanted[0];
  const auto results = static_cast<double>(call.plan.results[0]->element_count());
  const double count = results > 0 ? static_cast<double>(spec.element_count()) / results : 1;
  const auto& asked = call.argument(stack, "dtype");
  const auto dtype = asked.isNone() ? input.scalar_type() : asked.toScalarType();
  stack = {at::sum(input.to(dtype), dims, keep).div_(count)};
}

at::Scalar least_value(c10::ScalarType dtype) {
  if (c10::isFloatingType(dtype)) return -std::numeric_limits<double>::infinity();
  if (dtype == c10::kBool) return false;
  return AT_DISPATCH_INTEGRAL_TYPES(dtype, "amax", [] { return at::Scalar(std::numeric_limits<scalar_t>::lowest()); });
}

/// The maximum over no elements is the smallest value there is.
void local_amax(const LocalCall& call, torch::jit::Stack& stack) {
  const auto input = stack[0].toTensor();
  if (input.numel() > 0) return call.op.callBoxed(stack);
  stack = {at::full(call.plan.results[0]->local_sizes[call.index], least_value(input.scalar_type()), input.options())};
}

std::vector<ResultShape> sum_of_squares_shape(const Call&) { return {{{}, {}, c10::kDouble}}; }
std::vector<ResultShape> two_integers(const Call&) { return {{{2}, {}, c10::kLong}}; }
std::vector<ResultShape> one_wide(const Call& call) {
  return {{{}, {}, call.operand_dtypes[0] == c10::kDouble ? c10::kDouble : c10::kFloat}};
}

constexpr Rule kRows[] = {
    {"amax", "reduction", "all but dims; max", "-", Rule::kMax, over_dims, nullptr, local_amax},
    {"mean", "reduction", "...->", "e", Rule::kPlain, over_all, nullptr, local_mean},
    {"mean.dim", "reduction", "all but dims", "e", Rule::kPlain, over_dims, nullptr, local_mean},
    {"mesh::absolute_maximum", "reduction", "...->; max", "-", Rule::kMax, over_all, one_wide},
    {"mesh::fixed_point_sum", "reduction", "...->T", "-", Rule::kPlain, to_integers, two_integers},
    {"mesh::scaled_squares", "reduction", "...->T", "-", Rule::kPlain, to_integers, two_integers},
    {"mesh::sum_of_squares", "reduction", "...->", "-", Rule::kPlain, nullptr, sum_of_squares_shape},
    {"sum", "reduction", "...->", "e", Rule::kPlain, over_all},
    {"sum.dim_IntList", "reduction", "all but dims", "e", Rule::kPlain, over_dims},
};

}  // namespace

std::span<const Rule> reductions() { return kRows; }

}  // namespace lockstep::rules
