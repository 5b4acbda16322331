// Drawing meshes, layouts and calls; one call compared with one device.
#include "fuzz/trials/rule_trial.h"

#include <ATen/Functions.h>
#include <rapidcheck.h>

#include "core/error.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

bool is_low_precision(const at::Tensor& tensor) { return c10::isReducedFloatingType(tensor.scalar_type()); }

OpCall draw_call(const OpCase& op_case, const Numerics& numerics) {
  Inputs inputs(numerics.dtype, numerics.exact);
  return make_call(op_case.called, op_case.draw(inputs));
}

Stack on_mesh_device(const OpCall& call) {
  auto stack = call.arguments;
  for (size_t i = 0; i < stack.size(); ++i)
    if (call.op.schema().arguments()[i].name() == "device") stack[i] = c10::Device(c10::kPrivateUse1);
  return stack;
}

bool lie_alike(const Placement& a, const Placement& b) {
  return a.kind == b.kind && a.dim == b.dim && a.reduction == b.reduction;
}

bool lie_alike(const std::vector<Placement>& a, const std::vector<Placement>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) { return lie_alike(x, y); });
}

/// Of dimensions with several elements.
bool same_strides(c10::IntArrayRef strides, const at::Tensor& tensor) {
  for (size_t dim = 0; dim < strides.size() && tensor.numel() > 0; ++dim)
    if (tensor.sizes()[dim] > 1 && strides[dim] != tensor.strides()[dim]) return false;
  return true;
}

}  // namespace

DrawnMesh::DrawnMesh(Domain domain, const Rules& rules, bool strict, lockstep::Numerics numerics) {
  const bool is_large = drawn(*rc::gen::inRange(0, 4)) == 3, is_part = drawn(*rc::gen::inRange(0, 8)) == 7;
  auto axes = *(is_large ? mesh_axes(4, 32) : mesh_axes(3, 8));
  if (is_part) axes.push_back({"stage", 2});
  World::Options options;
  options.domain = domain;
  options.rules = rules;
  options.policy.strict = strict;
  options.numerics = numerics;
  world = simulated_world(axes, std::move(options));
  mesh = &world->mesh(axes);
  if (is_part) mesh = &mesh->submesh("stage", 1);
}

Numerics draw_numerics(const OpCase& op_case) {
  Numerics numerics;
  numerics.dtype = op_case.is(OpCase::kWide)
                       ? *rc::gen::element(c10::kFloat, c10::kDouble)
                       : *rc::gen::element(c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kBFloat16, c10::kHalf);
  const bool also_real = *rc::gen::weightedElement<int>({{2, 0}, {1, 1}}) == 1;
  numerics.exact = op_case.is(OpCase::kExact) && !also_real;
  if (numerics.exact && op_case.is(OpCase::kIntegers) && *rc::gen::inRange(0, 4) == 3)
    numerics.dtype = *rc::gen::element(c10::kLong, c10::kInt);
  const bool drawn = *rc::gen::weightedElement<int>({{1, 0}, {2, 1}}) == (numerics.exact ? 1 : 0);
  const bool native = op_case.is(OpCase::kDeclared) || drawn;
  numerics.domain = native ? Domain::kDeclared : Domain::kFloat64;
  if (native && !numerics.exact) numerics.dtype = c10::kDouble;  // reals are compared in doubles
  return numerics;
}

Layout draw_layout(const Mesh& mesh, const at::Tensor& tensor) {
  std::vector<Reduction> kinds{Reduction::kSum};
  const bool averages = tensor.is_floating_point() || tensor.is_complex();
  if (averages) kinds.push_back(Reduction::kAvg);
  if (tensor.scalar_type() != c10::kBool) kinds.push_back(Reduction::kProd);
  if (tensor.scalar_type() != c10::kBool && !tensor.is_complex())
    kinds.insert(kinds.end(), {Reduction::kMax, Reduction::kMin});
  const auto reduction = *rc::gen::elementOf(kinds);
  auto layout = testing::layout(mesh, static_cast<int>(tensor.dim()), true);
  auto placements = layout.placements();
  const bool average = reduction == Reduction::kSum && averages;  // sums and averages may mix
  for (auto& placement : placements)
    if (placement.is_partial())
      placement.reduction = average && *rc::gen::inRange(0, 3) == 2 ? Reduction::kAvg : reduction;
  return Layout(mesh, std::move(placements));
}

Arranger::Arranger(const Mesh& mesh, const OpSharding& sharding)
    : mesh_(mesh), form_(sharding), all_(candidates(sharding, {Reduction::kSum, Reduction::kAvg})) {
  for (int label = 0; label < sharding.label_count(); ++label) {
    units_.emplace_back();
    for (int axis = 0; axis < mesh.axis_count(); ++axis)
      units_.back().push_back(*rc::gen::weightedElement<int64_t>({{3, 1}, {1, 2}, {1, 3}}));
  }
  for (int axis = 0; axis < mesh.axis_count(); ++axis) order_.push_back(axis);
  if (order_.size() > 1 && *rc::gen::arbitrary<bool>()) std::reverse(order_.begin(), order_.end());
}

std::vector<size_t> Arranger::draw_choice() const {
  std::vector<size_t> chosen;
  for (int axis = 0; axis < mesh_.axis_count(); ++axis) chosen.push_back(*rc::gen::inRange<size_t>(0, all_.size()));
  return chosen;
}

Layout Arranger::layout(const OpShardingDims& dims, const std::vector<size_t>& chosen, bool result,
                        size_t index) const {
  Placements placements(chosen.size());
  std::map<int, uint8_t> depths;
  for (const int axis : order_) {
    const auto a = static_cast<size_t>(axis);
    const auto& candidate = all_[chosen[a]];
    auto placement = (result ? candidate.results : candidate.operands)[index];
    if (placement.is_shard()) {
      const auto& dim = dims[static_cast<size_t>(placement.dim)];
      placement.unit = units_[static_cast<size_t>(dim.label)][a] * dim.factor;
      placement.depth = depths[placement.dim]++;
    }
    placements[a] = placement;
  }
  return Layout(mesh_, std::move(placements));
}

std::optional<ChosenLayouts> Arranger::arrange(const std::vector<size_t>& chosen, const OpCall& call) const {
  try {
    ChosenLayouts choice;
    for (size_t i = 0; i < form_.operands.size(); ++i) {
      choice.operands.push_back(layout(form_.operands[i], chosen, false, i));
      for (const auto& placement : choice.operands.back().placements())
        if (placement.is_partial() && placement.reduction == Reduction::kAvg && !call.tensor(i).is_floating_point())
          return std::nullopt;
    }
    for (size_t r = 0; r < form_.results.size(); ++r)
      choice.results.push_back(layout(form_.results[r], chosen, true, r));
    return choice;
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

bool Arranger::predicts(const std::vector<size_t>& chosen, size_t result, const Layout& layout) const {
  for (size_t axis = 0; axis < chosen.size(); ++axis) {
    const auto& operands = all_[chosen[axis]].operands;
    const auto fits = [&](const Candidate& candidate) {
      return lie_alike(candidate.operands, operands) &&
             lie_alike(candidate.results[result], layout[static_cast<int>(axis)]);
    };
    if (std::none_of(all_.begin(), all_.end(), fits)) return false;
  }
  return true;
}

std::vector<at::Tensor> scatter_all(const OpCall& call, const std::vector<Layout>& layouts) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < call.slots.size(); ++i) tensors.push_back(scatter(call.tensor(i), layouts[i]));
  return tensors;
}

std::vector<at::Tensor> reference(const OpCase& op_case, const OpCall& call, const Numerics& numerics) {
  std::vector<at::Tensor> results;
  if (!op_case.is(OpCase::kOwnPeer)) {
    for (const auto& result : run(call.op, plain_arguments(call, numerics)))
      results.push_back(into_domain(numerics.domain, at::resolve_neg(at::resolve_conj(result))));
    return results;
  }
  World::Options options;
  options.domain = numerics.domain;
  const auto world = simulated_world({{"one", 1}}, std::move(options));
  const auto& mesh = world->mesh("one=1");
  const MeshScope scope(mesh);
  const std::vector<Layout> layouts(call.slots.size(), Layout::replicated(mesh));
  const auto arguments =
      op_case.is(OpCase::kFactory) ? on_mesh_device(call) : with_tensors(call, scatter_all(call, layouts));
  for (const auto& result : run(call.op, arguments)) results.push_back(gather(result));
  return results;
}

namespace {

/// Leaves out what LibTorch has no kernel for, of half-precision numbers or of integers; where it fails an assertion of
/// its own, as of operands with gaps in memory; and out= tensors of a dtype that only a float64 domain gives them.
std::vector<at::Tensor> reference_if_any(const OpCase& op_case, const OpCall& call, const Numerics& numerics) {
  try {
    return reference(op_case, call, numerics);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    for (const auto* limit : {"not implemented for '", "INTERNAL ASSERT FAILED"})
      if (what.find(limit) != what.npos) RC_DISCARD("no kernel");
    const bool is_widened = numerics.domain == Domain::kFloat64 && c10::isIntegralType(numerics.dtype, true);
    if (is_widened && what.find("Expected out tensor to have dtype") != what.npos) RC_DISCARD("another dtype");
    throw;
  }
}

}  // namespace

Trial::Trial(const OpCase& op_case, const Rules& rules, bool strict)
    : op_case_(op_case),
      rules_(rules),
      numerics_(draw_numerics(op_case)),
      call_(draw_call(op_case, numerics_)),
      expected_(reference_if_any(op_case, call_, numerics_)),
      drawn_(numerics_.domain, rules, strict) {}

OpSharding Trial::sharding() const {
  auto declared = reference(op_case_, call_, {numerics_.dtype, numerics_.exact, Domain::kDeclared});
  for (size_t i = 0; i < call_.slots.size(); ++i)
    if (call_.writes(i)) {
      declared = {call_.tensor(i)};
      break;
    }
  return sharding_of(rule(), call_, declared);
}

void Trial::compare(const std::vector<at::Tensor>& actual, const std::string& line) const {
  ++compared_cases()[op_case_.op];
  if (actual.size() != expected_.size()) RC_FAIL(line + ": another number of results");
  for (size_t r = 0; r < actual.size(); ++r) {
    const auto what = difference(actual[r], expected_[r], numerics_, !op_case_.is(OpCase::kNoValues));
    if (!what.empty()) RC_FAIL(fmt::format("{}: result {} {}", line, r, what));
  }
}

void Trial::expect(const std::vector<at::Tensor>& tensors) const {
  const auto line = describe(call_, tensors, mesh(), numerics_);
  std::vector<at::Tensor> actual;
  const MeshScope scope(mesh());  // decompositions make constants
  try {
    actual = run(call_.op, with_tensors(call_, tensors));
  } catch (const BadInput& error) {
    bool may_refuse = mesh().world().policy().strict;
    for (size_t i = 0; i < call_.slots.size(); ++i) may_refuse |= call_.writes(i);
    if (!may_refuse) RC_FAIL(line + ": " + error.what());
    return;
  } catch (const std::exception& error) {
    RC_FAIL(line + ": " + error.what());
  }
  compare(actual, line);
}

bool Trial::rounds_partial(const ChosenLayouts& choice) const {
  const auto sharding = this->sharding();
  for (size_t i = 0; i < choice.operands.size(); ++i)
    if (sharding.linearity[i] == Linearity::kEach && !sharding.exact && choice.operands[i].any_partial() &&
        is_low_precision(call_.tensor(i)))
      return true;
  return false;
}

void Trial::check_plan(const Arranger& arranger, const std::vector<size_t>& chosen, const Stack& arguments,
                       const std::string& line) const {
  const auto plan =
      make_plan(mesh().world().part<RulesInUse>().get(), call_.op, arguments, mesh(), RunContext::current());
  if (plan->moves) RC_FAIL(line + ": operands in a candidate's layouts move");
  for (size_t r = 0; r < plan->results.size(); ++r) {
    if (!same_strides(plan->results[r]->strides, expected_[r]))
      RC_FAIL(
          c10::str(line, ": result ", r, " has strides ", plan->results[r]->strides, " for ", expected_[r].strides()));
    if (!arranger.predicts(chosen, r, plan->results[r]->layout))
      RC_FAIL(
          fmt::format("{}: result {} lies as {}, which no candidate says", line, r, plan->results[r]->layout.text()));
  }
}

void Trial::expect(const Arranger& arranger, const std::vector<size_t>& chosen) const {
  const auto choice = arranger.arrange(chosen, call_);
  if (!choice) return;
  const auto tensors = scatter_all(call_, choice->operands);
  const auto line = describe(call_, tensors, mesh(), numerics_);
  try {
    // Policy: a 16-bit product takes no Partial.
    if (!rounds_partial(*choice)) check_plan(arranger, chosen, with_tensors(call_, tensors), line);
  } catch (const lockstep::Error& error) {
    RC_FAIL(line + ": " + error.what());
  } catch (const c10::Error& error) {
    RC_FAIL(line + ": " + error.what_without_backtrace());
  }
  expect(tensors);
}

void Trial::expect_factory() const {
  const MeshScope scope(mesh());
  const auto line = describe(call_, {}, mesh(), numerics_);
  std::vector<at::Tensor> actual;
  try {
    actual = run(call_.op, on_mesh_device(call_));
  } catch (const std::exception& error) {
    RC_FAIL(line + ": " + error.what());
  }
  compare(actual, line);
}

}  // namespace lockstep::testing
