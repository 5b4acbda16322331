// In-place ops on sharded tensors and on views of them.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_trial.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

using View = std::function<at::Tensor(const at::Tensor&)>;

/// A tensor, and the view of it that is written.
struct Target {
  std::string text;
  at::Tensor base;
  View view;
};

Target make_target(const at::Tensor& written, std::string text, const Sizes& base_sizes, View view) {
  Target target{std::move(text), at::zeros(base_sizes, written.options()), std::move(view)};
  target.view(target.base).copy_(written);
  return target;
}

Target draw_target(const at::Tensor& written) {
  auto sizes = written.sizes().vec();
  const int kind = *rc::gen::inRange(0, 5);
  const int64_t dims = written.dim();
  const auto dim = dims > 0 ? *rc::gen::inRange<int64_t>(0, dims) : 0;
  if (kind == 1 && dims > 0) {
    const auto size = std::exchange(sizes[static_cast<size_t>(dim)], written.size(dim) + 2);
    return make_target(written, fmt::format("narrow({}, 1, {}) of ", dim, size), sizes,
                       [=](const at::Tensor& base) { return base.narrow(dim, 1, size); });
  }
  if (kind == 2) {
    sizes.insert(sizes.begin() + dim, 3);
    return make_target(written, fmt::format("select({}, 1) of ", dim), sizes,
                       [=](const at::Tensor& base) { return base.select(dim, 1); });
  }
  if (kind == 3 && dims > 1) {
    std::swap(sizes.front(), sizes.back());
    return make_target(written, "transpose(0, -1) of ", sizes,
                       [](const at::Tensor& base) { return base.transpose(0, -1); });
  }
  if (kind == 4)
    return make_target(written, "view of ", {written.numel()},
                       [=](const at::Tensor& base) { return base.view(sizes); });
  return make_target(written, "", sizes, [](const at::Tensor& base) { return base; });
}

/// The base and what the op returned (its view, written).
struct Written {
  at::Tensor base, self;
};

/// None if LibTorch refuses the op.
std::optional<Written> plain_write(const OpCall& call, const Target& target, const Numerics& numerics) {
  auto arguments = plain_arguments(call, numerics);
  const auto base = into_domain(numerics.domain, target.base).clone();
  arguments[0] = target.view(base);
  try {
    return Written{base, run(call.op, arguments)[0]};
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

/// Random ops: the values that a mesh of one rank draws.
Written one_rank_write(const OpCall& call, const Target& target, const Numerics& numerics) {
  World::Options options;
  options.domain = numerics.domain;
  const auto world = simulated_world({{"one", 1}}, std::move(options));
  const auto layout = Layout::replicated(world->mesh("one=1"));
  const auto base = distribute(target.base, layout);
  std::vector<at::Tensor> operands{target.view(base)};
  for (size_t i = 1; i < call.slots.size(); ++i) operands.push_back(distribute(call.tensor(i), layout));
  const auto results = run(call.op, with_tensors(call, operands));
  return {gather(base), gather(results[0])};
}

/// Where the op's operands lie: the base, then the others.
struct Operands {
  at::Tensor base;
  std::vector<at::Tensor> all;  ///< the view of the base first
  bool must_run = false;        ///< nothing moves and the result lies as what is written
};

Operands draw_operands(const OpCall& call, const Target& target, const Mesh& mesh) {
  Operands operands;
  operands.base = scatter(target.base, draw_layout(mesh, target.base));
  operands.all.push_back(target.view(operands.base));
  for (size_t i = 1; i < call.slots.size(); ++i)
    operands.all.push_back(scatter(call.tensor(i), draw_layout(mesh, call.tensor(i))));
  return operands;
}

/// A candidate's layouts, where its result lies as its first operand.
std::optional<Operands> arrange_operands(const OpCall& call, const Rule& rule, const Mesh& mesh) {
  const OpSharding sharding = sharding_of(rule, call, {call.tensor(0)});
  const Arranger arranger(mesh, sharding);
  const auto choice = arranger.arrange(arranger.draw_choice(), call);
  if (!choice || choice->results[0] != choice->operands[0]) return std::nullopt;
  Operands operands;
  operands.all = scatter_all(call, choice->operands);
  operands.base = operands.all[0];
  operands.must_run = true;
  for (const auto& layout : choice->operands) operands.must_run &= !layout.any_partial();
  return operands;
}

/// Whether it is the layout with its sums finished.
bool is_finished(const Layout& before, const Layout& after) {
  for (int axis = 0; axis < before.axis_count(); ++axis)
    if (before[axis].is_partial() ? !after[axis].is_replicate() : before[axis] != after[axis]) return false;
  return true;
}

/// Whether the op writes nothing, but makes a tensor a view of itself, which lies as that view.
bool becomes_a_view(const OpCall& call) {
  return find_op(functional_name(op_name(call.op))).schema().returns().at(0).alias_info() != nullptr;
}

void check(const OpCall& call, const Operands& operands, const Written& expected, const at::Tensor& before,
           const Numerics& numerics, const std::string& line) {
  const auto layout = layout_of(operands.base);
  at::Tensor self;
  try {
    self = run(call.op, with_tensors(call, operands.all))[0];
  } catch (const BadInput& error) {
    if (operands.must_run) RC_FAIL(line + ": " + error.what());
    const auto what = difference(operands.base, before, numerics, true);
    if (!what.empty()) RC_FAIL(line + ": refused, but written: " + what);
    return;
  } catch (const std::exception& error) {
    if (lacks_kernel(error.what(), kFloat8)) RC_DISCARD("no kernel");
    RC_FAIL(line + ": " + error.what());
  }
  ++compared_cases()[functional_name(op_name(call.op))];  // refusals do not count
  if (layout_of(operands.base) != layout && !is_finished(layout, layout_of(operands.base)) && !becomes_a_view(call))
    RC_FAIL(line + ": the layout became " + layout_of(operands.base).text());
  for (const auto& [actual, wanted] : {std::pair{operands.base, expected.base}, {self, expected.self}}) {
    const auto what = difference(actual, wanted, numerics, true);
    if (!what.empty()) RC_FAIL(fmt::format("{}: {}", line, what));
  }
}

}  // namespace

void in_place_equals_one_device(const OpCase& op_case, const Rules& rules) {
  const auto op = in_place_form(op_case.op);
  const bool has_rule = rules->find(op_name(*op)) != nullptr;  // not squeeze_ and its like
  const auto numerics = draw_numerics(op_case);
  auto called = op_case;
  called.called = op_name(*op);
  const auto call = draw_call(called, numerics);
  const auto target = draw_target(call.tensor(0));
  const auto expected = op_case.is(OpCase::kOwnPeer) ? std::optional(one_rank_write(call, target, numerics))
                                                     : plain_write(call, target, numerics);
  if (!expected) return;
  const DrawnMesh drawn(numerics.domain, rules, false);
  std::optional<Operands> operands;
  if (target.text.empty() && has_rule) operands = arrange_operands(call, *rules->find(op_case.op), *drawn.mesh);
  if (!operands) operands = draw_operands(call, target, *drawn.mesh);
  check(call, *operands, *expected, into_domain(numerics.domain, target.base), numerics,
        target.text + describe(call, operands->all, *drawn.mesh, numerics));
}

}  // namespace lockstep::testing
