// Calls of ops through the dispatcher, on plain and on sharded tensors, and their comparison.
#include "fuzz/calls/sharded_calls.h"

#include <ATen/Functions.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

std::pair<std::string, std::string> split_name(const std::string& op) {
  const auto full = op.find("::") == std::string::npos ? "aten::" + op : op;
  const auto dot = full.find('.');
  if (dot == std::string::npos) return {full, ""};
  return {full.substr(0, dot), full.substr(dot + 1)};
}

bool names_dtype(const c10::Argument& argument) {
  auto type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

bool is_written(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

/// In doubles, relative to the largest element.
constexpr double kRelative = 1e-12;

std::string far_apart(const at::Tensor& actual, const at::Tensor& expected, double least, double relative = kRelative) {
  if (expected.numel() == 0) return {};
  const auto a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  if (!at::equal(at::isfinite(a), at::isfinite(b))) return "one is not finite where the other is";
  const auto finite = at::isfinite(b);
  const auto zero = at::zeros_like(b);
  const double largest = at::where(finite, b, zero).abs().max().item<double>();
  const double error = at::where(finite, a - b, zero).abs().max().item<double>();
  if (error <= relative * std::max(largest, least)) return {};
  return fmt::format("off by {:.3g} of a largest element {:.3g}", error, largest);
}

/// How far an average of ranks that all have the same may be from it: (x + x + x) / 3 rounds three times, unless x has
/// few bits. What magnitudes of complex numbers give has many, even of exact ones.
double rounded_by_averages(const Layout& layout, const at::Tensor& expected) {
  bool rounds = false;
  for (int axis = 0; axis < layout.axis_count(); ++axis) {
    const auto ranks = static_cast<uint64_t>(layout.mesh().axis_size(axis));
    rounds |= layout[axis].is_partial() && layout[axis].reduction == Reduction::kAvg && !std::has_single_bit(ranks);
  }
  if (!rounds || !(expected.is_floating_point() || expected.is_complex())) return 0;
  const auto real = expected.is_complex() ? at::view_as_real(at::resolve_conj(expected)) : expected;
  const auto scaled = real.to(at::kDouble) * 65536;
  if (scaled.eq(scaled.round()).all().item<bool>()) return 0;
  return 3 * std::numeric_limits<float>::epsilon();
}

std::string argument_text(const c10::IValue& value) {
  if (value.isNone()) return "None";
  if (value.isScalar()) return fmt::format("{:g}", value.toScalar().toDouble());
  if (value.isBool()) return value.toBool() ? "true" : "false";
  return value.isIntList() ? c10::str("[", value.toIntVector(), "]") : "...";
}

}  // namespace

std::string values_of(const at::Tensor& tensor) {
  std::string text;
  const auto flat = (tensor.is_complex() ? at::view_as_real(tensor) : tensor).to(at::kDouble).reshape({-1});
  for (int64_t i = 0; i < std::min<int64_t>(flat.numel(), 16); ++i)
    text += fmt::format(" {:g}", flat[i].item<double>());
  return text;
}

c10::OperatorHandle find_op(const std::string& op) {
  register_backend();
  const auto [name, overload] = split_name(op);
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
}

std::optional<c10::OperatorHandle> in_place_form(const std::string& op) {
  register_backend();
  auto [name, overload] = split_name(op);
  if (overload.starts_with("Tensor_")) overload = overload.substr(7);  // pow.Tensor_Scalar, pow_.Scalar
  if (op == "bernoulli.p") overload = "float";
  const auto functional = c10::Dispatcher::singleton().findSchema({name, split_name(op).second});
  auto form = c10::Dispatcher::singleton().findSchema({name + "_", overload});
  if (!form || !functional) return form;
  // polygamma(n, self) and pow(2, self) have no form with the same arguments.
  const auto &ours = form->schema().arguments(), &theirs = functional->schema().arguments();
  return ours[0].name() == theirs[0].name() && *ours[0].type() == *theirs[0].type() ? form : std::nullopt;
}

at::Tensor tensor_in(const Stack& arguments, const Slot& slot) {
  const auto& value = arguments[static_cast<size_t>(slot.argument)];
  const auto element = static_cast<size_t>(std::max(slot.element, 0));
  if (slot.element < 0) return value.toTensor();
  return value.isTensorList() ? value.toTensorVector()[element] : *value.toOptionalTensorVector()[element];
}

at::Tensor OpCall::tensor(size_t slot) const { return tensor_in(arguments, slots[slot]); }

bool OpCall::writes(size_t slot) const {
  return is_written(op.schema().arguments()[static_cast<size_t>(slots[slot].argument)]);
}

std::vector<at::Tensor> tensors_of(const OpCall& call) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < call.slots.size(); ++i) tensors.push_back(call.tensor(i));
  return tensors;
}

OpCall make_call(const std::string& op, const Stack& leading) {
  OpCall call{find_op(op), leading, {}};
  const auto& arguments = call.op.schema().arguments();
  for (size_t i = leading.size(); i < arguments.size(); ++i)
    call.arguments.push_back(arguments[i].default_value().value_or(c10::IValue()));
  for_each_tensor(call.arguments, [&](const Slot& slot, const at::Tensor&) { call.slots.push_back(slot); });
  return call;
}

Stack with_tensors(const OpCall& call, const std::vector<at::Tensor>& tensors) {
  Stack stack = call.arguments;
  for (size_t i = 0; i < tensors.size(); ++i) set_slot(stack, call.slots[i], tensors[i]);
  return stack;
}

namespace {

void append(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
}

}  // namespace

std::vector<at::Tensor> run(const c10::OperatorHandle& op, Stack arguments) {
  const RandomScope seed(7);
  RunContext::current().begin_microbatch(1, 0);
  const ModuleScope module("call");
  const Stack before = arguments;
  try {
    op.callBoxed(arguments);
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
  std::vector<at::Tensor> results;
  for (const auto& value : arguments) append(value, results);
  for (size_t i = 0; i < before.size(); ++i)
    if (is_written(op.schema().arguments()[i])) append(before[i], results);
  return results;
}

Stack plain_arguments(const OpCall& call, const Numerics& numerics) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < call.slots.size(); ++i)
    tensors.push_back(into_domain(numerics.domain, call.tensor(i)).clone());
  auto stack = with_tensors(call, tensors);
  for (size_t i = 0; i < stack.size(); ++i)
    if (names_dtype(call.op.schema().arguments()[i]) && !stack[i].isNone())
      stack[i] = static_cast<int64_t>(stored(numerics.domain, stack[i].toScalarType()));
  return stack;
}

/// Sums of several ranks' zeros have no sign; neither has what is no number: LibTorch's loops over vectors and those
/// over single elements, of which a shard's size decides, give other ones (remainder by 0).
at::Tensor without_signs(const at::Tensor& x) { return at::where(at::isnan(x), at::full({}, NAN, x.options()), x + 0); }

std::string difference(const at::Tensor& actual, const at::Tensor& expected, const Numerics& numerics, bool values) {
  if (!is_sharded(actual)) return "the result is not sharded";
  if (actual.sizes() != expected.sizes()) return c10::str("sizes ", actual.sizes(), " for ", expected.sizes());
  const auto stored_dtype = stored(numerics.domain, actual.scalar_type());
  if (stored_dtype != expected.scalar_type())
    return c10::str("dtype ", actual.scalar_type(), " for ", expected.scalar_type());
  at::Tensor whole;
  try {
    whole = gather(actual);
  } catch (const std::exception& error) {
    return error.what();
  }
  if (whole.sizes() != expected.sizes() || whole.scalar_type() != stored_dtype)
    return "gathered to other sizes or dtype";
  if (!values) return {};
  const auto dtype = c10::toRealValueType(expected.scalar_type());
  const double averages = dtype == c10::kFloat ? rounded_by_averages(layout_of(actual), expected) : 0;
  if (expected.is_complex()) {
    const auto as_real = [](const at::Tensor& x) { return at::view_as_real(at::resolve_conj(x)).to(at::kDouble); };
    return far_apart(as_real(whole), as_real(expected), numerics.least, std::max(kRelative, averages));
  }
  if (averages > 0) return far_apart(whole, expected, numerics.least, averages);
  const bool bits = numerics.exact || expected.scalar_type() != c10::kDouble;
  const bool has_signs = bits && expected.is_floating_point() && !c10::isFloat8Type(expected.scalar_type());
  const auto a = has_signs ? without_signs(whole) : whole, b = has_signs ? without_signs(expected) : expected;
  const auto what = !bits ? far_apart(a, b, numerics.least) : same_bits(a, b) ? "" : "other bits";
  if (what.empty()) return {};
  return fmt::format("{}: {} gives{}, expected{}", what, spec_of(actual).text(), values_of(whole), values_of(expected));
}

OpSharding sharding_of(const Rule& rule, const OpCall& call, const std::vector<at::Tensor>& results) {
  Call seen{rule.op, call.op.schema(), call.arguments};
  seen.slots = call.slots;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    seen.operand_sizes.push_back(call.tensor(i).sizes().vec());
    seen.operand_dtypes.push_back(call.tensor(i).scalar_type());
  }
  for (const auto& result : results) seen.results.push_back({result.sizes().vec(), {}, result.scalar_type()});
  return op_sharding_of(rule, seen);
}

std::string describe(const OpCall& call, const std::vector<at::Tensor>& tensors, const Mesh& mesh,
                     const Numerics& numerics) {
  std::string text = op_name(call.op) + "(";
  size_t slot = 0;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    text += i ? ", " : "";
    bool any = false;
    for (; slot < call.slots.size() && call.slots[slot].argument == static_cast<int>(i); ++slot, any = true)
      text += (any ? " + " : "") + (is_sharded(tensors[slot]) ? spec_of(tensors[slot]).text() : std::string("plain"));
    if (!any) text += argument_text(call.arguments[i]);
  }
  return fmt::format("{}) on mesh {}, {} domain, {} inputs", text, mesh.text(), to_text(numerics.domain),
                     numerics.exact ? "exact" : "real");
}

}  // namespace lockstep::testing
