// One result element from the operand elements at the same place. Rows are grouped by linearity, each group sorted.
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/planning/infer_results.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

constexpr Rule pointwise_row(const char* op, const char* linearity, unsigned traits = Rule::kPlain) {
  return {op, "pointwise", "...->...", linearity, traits};
}

/// A cast keeps a Partial where it loses nothing: a sum of rounded terms is not the rounded sum. (LibTorch promotes no
/// float8.)
OpSharding cast_sharding(const Call& call) {
  OpSharding sharding = parse_op_sharding("...->...", call.operand_sizes, call.result_sizes());
  const auto from = call.operand_dtypes[0], to = call.results[0].dtype;
  const bool has_float8 = c10::isFloat8Type(from) || c10::isFloat8Type(to);
  sharding.linearity = {!has_float8 && c10::promoteTypes(from, to) == to ? Linearity::kEach : Linearity::kNone};
  return sharding;
}

/// Parts of a sum are copied as parts but where numbers become integers or truth values: what is cut off of each part
/// is not what is cut off of their sum.
OpSharding copy_sharding(const Call& call) {
  OpSharding sharding = parse_op_sharding("...->...", call.operand_sizes, call.result_sizes());
  const auto from = call.operand_dtypes[1], to = call.operand_dtypes[0];
  const bool cuts =
      from != to && (to == c10::kBool || (!c10::isIntegralType(from, true) && c10::isIntegralType(to, true)));
  if (cuts) sharding.linearity = {Linearity::kNone, Linearity::kNone};
  return sharding;
}

/// LibTorch's kernel takes a gradient of the operand's sizes alone; its meta kernel would broadcast.
OpSharding of_equal_sizes(const Call& call) {
  if (call.operand_sizes[0] != call.operand_sizes[1])
    fail<BadInput>("{}: the gradient's sizes {} should be the operand's, {}", call.op,
                   c10::str(c10::IntArrayRef(call.operand_sizes[0])),
                   c10::str(c10::IntArrayRef(call.operand_sizes[1])));
  return parse_op_sharding("...->...", call.operand_sizes, call.result_sizes());
}

/// Like the operand, where LibTorch has no meta kernel.
std::vector<ResultShape> like_operand(const Call& call) {
  return {shape_of(at::empty_like(meta_like(call.argument("self").toTensor())))};
}

/// How large complex numbers are is real.
std::vector<ResultShape> magnitudes(const Call& call) {
  auto shape = like_operand(call)[0];
  shape.dtype = c10::toRealValueType(shape.dtype);
  return {shape};
}

ResultShape as_mask(ResultShape shape) {
  shape.dtype = c10::kBool;
  return shape;
}

std::vector<ResultShape> mask_like_operand(const Call& call) { return {as_mask(like_operand(call)[0])}; }

/// The two operands, broadcast; strides as for a sum.
std::vector<ResultShape> mask_of_two(const Call& call) {
  return {as_mask(
      shape_of(at::add(meta_like(call.argument("self").toTensor()), meta_like(call.argument("other").toTensor()))))};
}

/// The three operands of `where`, broadcast; strides as for a sum.
std::vector<ResultShape> where_shape(const Call& call) {
  const auto choices =
      at::add(meta_like(call.argument("self").toTensor()), meta_like(call.argument("other").toTensor()));
  // Cast: LibTorch promotes no truth values to float8.
  const auto condition = meta_like(call.argument("condition").toTensor()).to(choices.scalar_type());
  const auto all = at::add(choices, condition);
  return {{all.sizes().vec(), all.strides().vec(), choices.scalar_type()}};
}

/// The quotient of integers is a floating number, in the domain's storage.
void local_quotient(const LocalCall& call, torch::jit::Stack& stack) {
  const auto dividend = call.tensor(stack, "self");
  if (!dividend.is_floating_point() && call.plan.written < 0) {
    call.set_argument(stack, "self", dividend.to(storage(*call.plan.results[0])));
  }
  call.op.callBoxed(stack);
}

/// An op without a meta kernel in LibTorch's library (its own are written in Python).
constexpr Rule shaped_row(const char* op, std::vector<ResultShape> (*shapes)(const Call&)) {
  return {op, "pointwise", "...->...", "-", Rule::kPlain, nullptr, shapes};
}

constexpr Rule kRows[] = {
    // not linear
    shaped_row("abs", magnitudes),
    pointwise_row("add.Scalar", "-"),
    pointwise_row("addcdiv", "-"),
    pointwise_row("addcmul", "-"),
    pointwise_row("bitwise_and.Tensor", "-"),
    pointwise_row("bitwise_not", "-"),
    pointwise_row("bitwise_or.Tensor", "-"),
    pointwise_row("clamp", "-"),
    pointwise_row("clamp_min", "-"),
    pointwise_row("cos", "-"),
    {"div.Tensor", "pointwise", "...->...", "e-", Rule::kPlain, nullptr, nullptr, local_quotient},
    pointwise_row("eq.Scalar", "-"),
    pointwise_row("eq.Tensor", "-"),
    pointwise_row("erf", "-"),
    pointwise_row("exp", "-"),
    pointwise_row("fill.Scalar", "-"),
    pointwise_row("ge.Scalar", "-"),
    pointwise_row("ge.Tensor", "-"),
    pointwise_row("gelu", "-"),
    {"gelu_backward", "pointwise", "...->...", "e-", Rule::kPlain, of_equal_sizes},
    pointwise_row("gt.Scalar", "-"),
    pointwise_row("gt.Tensor", "-"),
    shaped_row("isfinite", mask_like_operand),
    shaped_row("isinf", mask_like_operand),
    shaped_row("isnan", mask_like_operand),
    pointwise_row("le.Scalar", "-"),
    pointwise_row("le.Tensor", "-"),
    pointwise_row("log", "-"),
    pointwise_row("log1p", "-"),
    shaped_row("logical_and", mask_of_two),
    shaped_row("logical_not", mask_like_operand),
    shaped_row("logical_or", mask_of_two),
    pointwise_row("lt.Scalar", "-"),
    pointwise_row("lt.Tensor", "-"),
    pointwise_row("masked_fill.Scalar", "-"),
    pointwise_row("maximum", "-"),
    pointwise_row("minimum", "-"),
    pointwise_row("ne.Scalar", "-"),
    pointwise_row("ne.Tensor", "-"),
    pointwise_row("pow.Tensor_Scalar", "-"),
    pointwise_row("pow.Tensor_Tensor", "-"),
    pointwise_row("reciprocal", "-"),
    shaped_row("relu", like_operand),
    pointwise_row("rsqrt", "-"),
    pointwise_row("rsub.Scalar", "-"),
    pointwise_row("sgn", "-"),
    pointwise_row("sigmoid", "-"),
    pointwise_row("sigmoid_backward", "e-"),
    pointwise_row("sign", "-"),
    pointwise_row("silu", "-"),
    pointwise_row("silu_backward", "e-"),
    pointwise_row("sin", "-"),
    pointwise_row("sqrt", "-"),
    pointwise_row("square", "-"),
    pointwise_row("sub.Scalar", "-"),
    pointwise_row("tanh", "-"),
    pointwise_row("tanh_backward", "e-"),
    pointwise_row("threshold_backward", "e-"),
    shaped_row("where.self", where_shape),
    // linear up to rounding
    pointwise_row("add.Tensor", "j", Rule::kAdds),
    {"copy", "pointwise", "...->...", "j", Rule::kPlain, copy_sharding},
    {"div.Scalar", "pointwise", "...->...", "e", Rule::kPlain, nullptr, nullptr, local_quotient},
    pointwise_row("lerp.Scalar", "j"),
    pointwise_row("mul.Scalar", "e"),
    pointwise_row("mul.Tensor", "ee"),
    pointwise_row("sub.Tensor", "j"),
    // exactly linear
    {"_to_copy", "pointwise", "...->...", "e", Rule::kExact, cast_sharding},
    pointwise_row("clone", "e", Rule::kExact),
    pointwise_row("neg", "e", Rule::kExact),
    pointwise_row("zero", "e", Rule::kExact),
};

}  // namespace

std::span<const Rule> pointwise() { return kRows; }

}  // namespace lockstep::rules
