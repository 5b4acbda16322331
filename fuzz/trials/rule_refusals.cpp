// Calls that do not fit: the mesh refuses what LibTorch refuses, whatever the layouts are.
#include <ATen/Functions.h>
#include <rapidcheck.h>

#include <optional>

#include "core/error.h"
#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/calls/operand_sizes.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/context/observer.h"
#include "runtime/context/world.h"

namespace lockstep::testing {
namespace {

/// A dimension more or less, or one with another number of elements, half of them among others: what a rank has of
/// another operand, on two, may fit it. Values repeat, so that indices stay legal.
at::Tensor misfit(const at::Tensor& tensor) {
  auto sizes = tensor.sizes().vec();
  const auto kind = *rc::gen::inRange(0, sizes.empty() ? 1 : 6);
  if (kind == 0) {
    sizes.insert(sizes.begin() + *rc::gen::inRange<int64_t>(0, static_cast<int64_t>(sizes.size()) + 1),
                 *rc::gen::inRange<int64_t>(1, 4));
  } else {
    const auto dim = *rc::gen::inRange<size_t>(0, sizes.size());
    if (kind == 1)
      sizes.erase(sizes.begin() + static_cast<int64_t>(dim));
    else
      sizes[dim] = *rc::gen::element<int64_t>(0, 1, (sizes[dim] + 1) / 2, (sizes[dim] + 1) / 2, sizes[dim] + 1,
                                              sizes[dim] + 2, 7);
  }
  const int64_t count = c10::multiply_integers(sizes);
  if (tensor.numel() == 0) return at::zeros(sizes, tensor.options());
  const auto flat = tensor.reshape({-1});
  return flat.index_select(0, at::arange(count).remainder(tensor.numel())).reshape(sizes);
}

/// One index that is none: below zero or above all that are.
at::Tensor beyond(const at::Tensor& indices) {
  auto flat = indices.clone().reshape({-1});
  const auto wrong = *rc::gen::element<int64_t>(-1, -7, flat.max().item<int64_t>() + 1, 1000);
  flat[*rc::gen::inRange<int64_t>(0, flat.numel())] = wrong;
  return flat.reshape(indices.sizes());
}

/// Whether values may be what is wrong: only a rank sees these.
bool holds_indices(const OpCall& call) {
  if (op_name(call.op).starts_with("masked_scatter")) return true;  // how many are taken
  for (size_t i = 0; i < call.slots.size(); ++i)
    if (call.tensor(i).scalar_type() == c10::kLong || call.tensor(i).scalar_type() == c10::kInt) return true;
  return false;
}

/// What a user may get wrong of one operand. Values of our own ops' are their callers' business.
at::Tensor spoiled(const OpCase& op_case, const at::Tensor& tensor) {
  const bool may_be_index = tensor.scalar_type() == c10::kLong && tensor.numel() > 0;
  const bool is_own = op_case.op.starts_with("mesh::");
  return may_be_index && !is_own && *rc::gen::arbitrary<bool>() ? beyond(tensor) : misfit(tensor);
}

using Results = std::optional<std::vector<at::Tensor>>;  ///< none: refused

/// LibTorch 2.11 reads beyond the pivots of a right side of more matrices, instead of refusing it.
bool ends_the_process(const OpCall& call) {
  if (op_name(call.op) != "linalg_ldl_solve") return false;
  const auto left = call.tensor(0).sizes(), right = call.tensor(2).sizes();
  return left.size() != right.size() || left.size() < 2 ||
         left.slice(0, left.size() - 2) != right.slice(0, left.size() - 2);
}

Results on_one_device(const OpCall& call, const Numerics& numerics) {
  if (ends_the_process(call)) return std::nullopt;
  try {
    return run(call.op, plain_arguments(call, numerics));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Whether an op was begun, and did not end.
class BegunOps : public Observer {
 public:
  explicit BegunOps(World& world) : world_(world) { world_.observers().add(this); }
  ~BegunOps() override { world_.observers().remove(this); }
  void before_op(const OpEvent&) override { ++begun_; }
  void after_op(const OpEvent&, std::span<const c10::IValue>) override { --begun_; }
  bool any() const { return begun_ > 0; }

 private:
  World& world_;
  int begun_ = 0;
};

/// An internal error is no answer to a user's mistake. Neither is one of a rank's own kernel about sizes: that of
/// another rank, or on another mesh, may take what it has of them.
Results on_mesh(const OpCall& call, const std::vector<at::Tensor>& tensors, World& world, const std::string& line) {
  const BegunOps begun(world);
  try {
    return run(call.op, with_tensors(call, tensors));
  } catch (const InternalError& error) {
    RC_FAIL(line + ": " + error.what());
  } catch (const std::exception& error) {
    if (begun.any() && !holds_indices(call)) RC_FAIL(line + ": refused by a rank, not by the plan: " + error.what());
    return std::nullopt;
  }
}

void compare(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected, const Numerics& numerics,
             bool values, const std::string& line) {
  for (size_t r = 0; r < actual.size(); ++r) {
    if (!is_sharded(actual[r])) continue;
    const auto what = difference(actual[r], expected[r], numerics, values);
    if (!what.empty()) RC_FAIL(fmt::format("{}: result {} {}", line, r, what));
  }
}

}  // namespace

std::map<std::string, int64_t>& refused_cases() {
  static std::map<std::string, int64_t> cases;
  return cases;
}

size_t refuses_as_one_device(const OpCase& op_case, const Rules& rules) {
  const auto numerics = Numerics{};
  Inputs inputs(numerics.dtype, numerics.exact);
  const auto in_place = in_place_form(op_case.op);
  const bool writes = in_place && rules->find(op_name(*in_place)) && *rc::gen::arbitrary<bool>();
  auto call = make_call(writes ? op_name(*in_place) : op_case.called, op_case.draw(inputs));
  RC_PRE(!call.slots.empty());
  const auto slot = *rc::gen::inRange<size_t>(0, call.slots.size());
  auto plain = tensors_of(call);
  plain[slot] = spoiled(op_case, plain[slot]);
  call.arguments = with_tensors(call, plain);
  const DrawnMesh drawn(numerics.domain, rules, false);
  std::vector<at::Tensor> tensors;
  for (const auto& tensor : plain) tensors.push_back(scatter(tensor, draw_layout(*drawn.mesh, tensor)));
  const auto line = describe(call, tensors, *drawn.mesh, numerics);
  // The mesh first: some kernels of LibTorch's neither check such a call nor survive it.
  const auto actual = on_mesh(call, tensors, drawn.mesh->world(), line);
  if (!actual) return ++refused_cases()[op_case.op], call.slots.size();
  const bool is_own = op_case.op.starts_with("mesh::");
  if (is_own && !fit(own_operands(op_case.op), plain)) RC_FAIL(line + ": the sizes do not fit, the mesh takes them");
  const auto expected = on_one_device(call, numerics);
  // Labels that are classes no more: mesh_ops::token_losses looks at them, once for all of its ops.
  if (is_own && !expected) return ++refused_cases()[op_case.op], call.slots.size();
  if (!expected) RC_FAIL(line + ": LibTorch refuses this call, the mesh does not");
  ++compared_cases()[op_case.op];
  compare(*actual, *expected, numerics, op_case.is(OpCase::kExact) && !op_case.is(OpCase::kNoValues), line);
  return call.slots.size();
}

}  // namespace lockstep::testing
