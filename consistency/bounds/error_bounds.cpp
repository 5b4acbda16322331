#include "consistency/bounds/error_bounds.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>
#include <map>

#include "consistency/bounds/families.h"
#include "runtime/planning/plan.h"

namespace lockstep {
namespace {

/// Rows outside of views and factories whose results are one device's bits.
constexpr std::string_view kBitRows[] = {"abs",
                                         "amax",
                                         "bitwise_and.Tensor",
                                         "bitwise_not",
                                         "bitwise_or.Tensor",
                                         "clamp",
                                         "clamp_min",
                                         "clone",
                                         "embedding",
                                         "eq.Scalar",
                                         "eq.Tensor",
                                         "fill.Scalar",
                                         "ge.Scalar",
                                         "ge.Tensor",
                                         "gt.Scalar",
                                         "gt.Tensor",
                                         "isfinite",
                                         "isinf",
                                         "isnan",
                                         "le.Scalar",
                                         "le.Tensor",
                                         "logical_and",
                                         "logical_not",
                                         "logical_or",
                                         "lt.Scalar",
                                         "lt.Tensor",
                                         "masked_fill.Scalar",
                                         "maximum",
                                         "minimum",
                                         "ne.Scalar",
                                         "ne.Tensor",
                                         "neg",
                                         "normal",
                                         "relu",
                                         "sgn",
                                         "sign",
                                         "threshold_backward",
                                         "uniform",
                                         "where.self",
                                         "zero",
                                         "mesh::absolute_maximum",
                                         "mesh::fixed_point_sum",
                                         "mesh::pick_class",
                                         "mesh::scaled_squares"};
constexpr std::string_view kUnwrittenRows[] = {"empty.memory_format", "empty_like", "empty_permuted",
                                               "empty_strided",       "new_empty",  "new_empty_strided"};

std::map<std::string_view, ErrorBound> all_bounds() {
  std::map<std::string_view, ErrorBound> all;
  for (const auto op : kBitRows) all[op] = {};
  for (const auto op : bounds::exact_rows()) all[op] = {};
  for (const auto op : kUnwrittenRows) all[op] = {ErrorBound::Kind::kUnwritten};
  for (const auto family :
       {bounds::activations(), bounds::attention(), bounds::elementwise(), bounds::experts(), bounds::function_pairs(),
        bounds::functions(), bounds::losses(), bounds::multilinear(), bounds::norms(), bounds::optimizer(),
        bounds::products(), bounds::softmax(), bounds::statistics(), bounds::sums(), bounds::windows()})
    for (const auto& row : family) all[row.op] = row.bound;
  return all;
}

bool is_exact_family(const Rule& rule) { return (rule.traits & Rule::kRearranges) != 0 || reads_no_values(rule); }

}  // namespace

const ErrorBound* error_bound(const Rule& rule) {
  static const auto all = all_bounds();
  static const ErrorBound bits;
  const auto found = all.find(rule.op);
  if (found != all.end()) return &found->second;
  return is_exact_family(rule) ? &bits : nullptr;
}

bool is_unwritten(const Rule* rule) {
  const auto* bound = rule ? error_bound(*rule) : nullptr;
  return bound && bound->kind == ErrorBound::Kind::kUnwritten;
}

at::Tensor rounded(const at::Tensor& roundings, double unit, const at::Tensor& magnitude) {
  constexpr double kSmallest = std::numeric_limits<float>::min();
  const auto error = roundings * unit;
  const auto factor = at::where(error <= 0.5, error / (1 - error), 2 * error);
  return magnitude * factor + roundings * kSmallest;
}

at::Tensor rounded(double roundings, double unit, const at::Tensor& magnitude) {
  return rounded(at::scalar_tensor(roundings, magnitude.options()), unit, magnitude);
}

at::Tensor ExactCall::rounded(double roundings, const at::Tensor& magnitude) const {
  return lockstep::rounded(roundings + more_roundings, unit, magnitude);
}

at::Tensor ExactCall::stored(double roundings, const at::Tensor& magnitude) const {
  return lockstep::rounded(roundings, stored_unit, magnitude);
}

at::Tensor ExactCall::rounded_as_stored(double roundings, const at::Tensor& magnitude) const {
  return rounded(roundings, magnitude) + stored(roundings, magnitude);
}

const c10::IValue& ExactCall::argument(std::string_view name) const { return arguments[argument_number(schema, name)]; }

at::Tensor ExactCall::tensor(std::string_view name) const {
  const auto tensor = argument(name).toTensor();
  return tensor.is_floating_point() ? tensor.to(c10::kDouble) : tensor;
}

at::Tensor ExactCall::magnitude(std::string_view name) const {
  return magnitudes[argument_number(schema, name)].toTensor().to(c10::kDouble).abs();
}

double ExactCall::number(std::string_view name) const { return argument(name).toScalar().toDouble(); }

}  // namespace lockstep
