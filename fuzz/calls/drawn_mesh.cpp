#include "fuzz/calls/drawn_mesh.h"

#include <ATen/Functions.h>
#include <rapidcheck.h>

#include "fuzz/calls/operand_forms.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"

namespace lockstep::testing {
namespace {

/// Whatever an op's case declares: LibTorch says whether it takes them.
constexpr c10::ScalarType kTriedDtypes[] = {c10::kLong,         c10::kInt,           c10::kByte,       c10::kBool,
                                            c10::kComplexFloat, c10::kFloat8_e4m3fn, c10::kFloat8_e5m2};

c10::ScalarType draw_dtype(bool wide) {
  std::vector<c10::ScalarType> all(wide ? 18 : 8, c10::kFloat);
  std::fill(all.begin() + (wide ? 9 : 4), all.end(), c10::kDouble);
  if (!wide) all.insert(all.end(), 7, c10::kBFloat16), all.insert(all.end(), 3, c10::kHalf);
  all.insert(all.end(), std::begin(kTriedDtypes), std::end(kTriedDtypes));
  return *rc::gen::elementOf(all);
}

/// What we draw, and what LibTorch's meta kernel refuses although its CPU kernel takes it.
bool takes_floating_alone(const OpCase& op_case) {
  return op_case.is(OpCase::kOwnPeer) || op_case.op.starts_with("native_dropout_backward");
}

bool has_float64_storage(c10::ScalarType dtype) { return !c10::isComplexType(dtype) && !c10::isFloat8Type(dtype); }

}  // namespace

DrawnMesh::DrawnMesh(Domain domain, const Rules& rules, bool strict, lockstep::Numerics numerics) {
  const bool is_large = drawn(*rc::gen::inRange(0, 4)) == 3;
  is_part = drawn(*rc::gen::inRange(0, 8)) == 7;
  axes = *(is_large ? mesh_axes(4, 32) : mesh_axes(3, 8));
  if (is_part) axes.push_back({"stage", 2});
  options.domain = domain;
  options.rules = rules;
  options.policy.strict = strict;
  options.numerics = numerics;
  for (const auto& axis : axes) options.rank_count *= static_cast<int>(axis.size);
  world = simulated_world(axes, options);
  mesh = &world->mesh(axes);
  if (is_part) mesh = &mesh->submesh("stage", 1);
}

Numerics draw_numerics(const OpCase& op_case) {
  Numerics numerics;
  numerics.dtype = draw_dtype(op_case.is(OpCase::kWide));
  const bool also_real = *rc::gen::weightedElement<int>({{2, 0}, {1, 1}}) == 1;
  numerics.exact = op_case.is(OpCase::kExact) && !also_real;
  const bool is_limited = !numerics.exact || takes_floating_alone(op_case);
  if (is_limited && is_tried(op_case, numerics.dtype)) numerics.dtype = c10::kFloat;
  if (numerics.exact && op_case.is(OpCase::kIntegers) && *rc::gen::inRange(0, 4) == 3)
    numerics.dtype = *rc::gen::element(c10::kLong, c10::kInt);
  const bool drawn = *rc::gen::weightedElement<int>({{1, 0}, {2, 1}}) == (numerics.exact ? 1 : 0);
  const bool native = op_case.is(OpCase::kDeclared) || drawn || !has_float64_storage(numerics.dtype);
  numerics.domain = native ? Domain::kDeclared : Domain::kFloat64;
  if (native && !numerics.exact) numerics.dtype = c10::kDouble;  // reals are compared in doubles
  return numerics;
}

bool is_tried(const OpCase& op_case, c10::ScalarType dtype) {
  if (dtype == c10::kLong || dtype == c10::kInt) return !op_case.is(OpCase::kIntegers);
  return std::find(std::begin(kTriedDtypes), std::end(kTriedDtypes), dtype) != std::end(kTriedDtypes);
}

OpCall draw_call(const OpCase& op_case, const Numerics& numerics) {
  Inputs inputs(numerics.dtype, numerics.exact);
  try {
    auto call = make_call(op_case.called, op_case.draw(inputs));
    draw_repeats(call);
    return call;
  } catch (const std::exception&) {
    if (!is_tried(op_case, numerics.dtype)) throw;
    RC_DISCARD("no such operands of that dtype");
  }
}

bool has_sums(const at::Tensor& tensor) { return !c10::isFloat8Type(tensor.scalar_type()); }

Layout draw_layout(const Mesh& mesh, const at::Tensor& tensor) {
  std::vector<Reduction> kinds{Reduction::kSum};
  // LibTorch's products and quotients of complex infinities are NaN.
  const bool multiplies = !tensor.is_complex() || at::isfinite(tensor).all().item<bool>();
  const bool is_truth = tensor.scalar_type() == c10::kBool;
  const bool averages = multiplies && (tensor.is_floating_point() || tensor.is_complex());
  if (averages) kinds.push_back(Reduction::kAvg);
  if (multiplies && !is_truth) kinds.push_back(Reduction::kProd);
  if (!is_truth && !tensor.is_complex()) kinds.insert(kinds.end(), {Reduction::kMax, Reduction::kMin});
  const auto reduction = *rc::gen::elementOf(kinds);
  auto layout = testing::layout(mesh, static_cast<int>(tensor.dim()), has_sums(tensor));
  auto placements = layout.placements();
  const bool average = reduction == Reduction::kSum && averages;  // sums and averages may mix
  for (auto& placement : placements)
    if (placement.is_partial())
      placement.reduction = average && *rc::gen::inRange(0, 3) == 2 ? Reduction::kAvg : reduction;
  return Layout(mesh, std::move(placements));
}

}  // namespace lockstep::testing
