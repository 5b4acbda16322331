// One call under canonical numerics on a mesh and on one rank, in bits.
#include "fuzz/trials/canonical_trial.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>

#include <set>

#include "core/error.h"
#include "fuzz/calls/special_values.h"
#include "fuzz/calls/two_groups.h"
#include "fuzz/cases/drawn.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/context/random.h"
#include "runtime/context/scopes.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/two_words.h"
#include "runtime/redistribution/gather.h"
#include "runtime/transport/simulated.h"

namespace lockstep::testing {
namespace {

/// 1 to 3 axes of 1 to 7, at most 12 ranks.
std::vector<MeshAxis> draw_axes() {
  std::vector<MeshAxis> axes;
  const int count = *rc::gen::inRange(1, 4);
  int64_t ranks = 1;
  for (int i = 0; i < count; ++i) {
    const auto size = *rc::gen::inRange<int64_t>(1, std::min<int64_t>(8, 12 / ranks + 1));
    axes.push_back({std::string(1, static_cast<char>('a' + i)), size});
    ranks *= size;
  }
  return axes;
}

/// Averages of equal values may round: they are left out.
CanonicalCase::Operand draw_operand(const Mesh& mesh, const at::Tensor& tensor, bool dense) {
  CanonicalCase::Operand operand;
  operand.turned = !dense && tensor.dim() >= 2 && *rc::gen::inRange(0, 4) == 3;
  operand.placements = draw_layout(mesh, operand.turned ? tensor.transpose(0, -1) : tensor).placements();
  for (auto& placement : operand.placements)
    if (placement.is_partial() && placement.reduction == Reduction::kAvg) placement.reduction = Reduction::kSum;
  return operand;
}

/// Whether it is given out as an unfinished sum, which is never -0.
bool is_sum(const CanonicalCase::Operand& operand) {
  const auto is = [](const Placement& each) { return each.is_partial() && each.reduction == Reduction::kSum; };
  return std::any_of(operand.placements.begin(), operand.placements.end(), is);
}

/// None, or such that the first operand's first dimension is a whole number of samples.
int64_t draw_batch(const OpCall& call) {
  if (call.slots.empty() || call.tensor(0).dim() == 0) return 0;
  const int64_t rows = call.tensor(0).size(0);
  const int64_t per_sample = *rc::gen::element<int64_t>(0, 1, 1, 2, 5);
  return per_sample > 0 && rows % per_sample == 0 ? rows / per_sample : 0;
}

at::Tensor place(const Mesh& mesh, const at::Tensor& plain, const CanonicalCase::Operand& operand) {
  const Layout layout(mesh, operand.placements);
  if (!operand.turned) return distribute(plain, layout);
  return distribute(plain.transpose(0, -1).contiguous(), layout).transpose(0, -1);
}

CanonicalOutcome outcome_on(const Mesh& mesh, const CanonicalCase& trial) {
  const MeshScope mesh_scope(mesh);
  const BatchScope batch({.count = trial.batch_rows});
  CanonicalOutcome outcome;
  try {
    std::vector<at::Tensor> operands, results;
    for (size_t i = 0; i < trial.operands.size(); ++i)
      operands.push_back(place(mesh, trial.call.tensor(i), trial.operands[i]));
    size_t weight = 0;
    if (trial.functions.first.empty())
      results = run(trial.call.op, with_tensors(trial.call, operands));
    else
      results = sharded_gradients(trial.call, operands, trial.functions, [&](const at::Tensor& plain) {
        return place(mesh, plain, trial.weight_places[weight++]);
      });
    const auto built_in = built_in_rules(lockstep::Numerics::kCanonical);
    const bool are_words = has_two_words(built_in->find(op_name(trial.call.op)));
    for (const auto& result : results) {
      const auto whole = result.defined() ? gather(result) : at::Tensor();
      outcome.tensors.push_back(are_words ? carried(whole) : whole);
    }
  } catch (const c10::Error& error) {
    outcome.refusal = error.what_without_backtrace();
  } catch (const std::exception& error) {
    outcome.refusal = error.what();
  }
  return outcome;
}

World::Options canonical_options(const CanonicalCase& trial, std::shared_ptr<const RuleSet> rules) {
  World::Options options;
  options.rank_count = 1;
  for (const auto& axis : trial.axes) options.rank_count *= static_cast<int>(axis.size);
  options.numerics = lockstep::Numerics::kCanonical;
  options.rounded_levels = trial.rounded_levels;
  options.rules = std::move(rules);
  return options;
}

CanonicalOutcome in_world(World::Options options, const CanonicalCase& trial) {
  World world(std::move(options));
  return outcome_on(world.mesh(trial.axes), trial);
}

at::Tensor one_nan(const at::Tensor& tensor) {
  return tensor.is_floating_point() ? tensor.masked_fill(at::isnan(tensor), std::nan("")) : tensor;
}

std::string values_that_differ(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.is_complex() && expected.is_complex())
    return values_that_differ(at::view_as_real(at::resolve_conj(actual)), at::view_as_real(at::resolve_conj(expected)));
  const auto a = one_nan(actual).contiguous(), b = one_nan(expected).contiguous();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type())
    return c10::str("is ", a.scalar_type(), a.sizes(), " for ", b.scalar_type(), b.sizes());
  if (same_bits(a, b)) return {};
  const auto bytes = static_cast<int64_t>(a.element_size());
  const auto* left = static_cast<const char*>(a.const_data_ptr());
  const auto* right = static_cast<const char*>(b.const_data_ptr());
  int64_t worst = -1, count = 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    if (std::memcmp(left + i * bytes, right + i * bytes, static_cast<size_t>(bytes)) != 0) {
      ++count;
      if (worst < 0) worst = i;
    }
  return fmt::format("differs in {} of {} elements, first in {}: {:.17g} for {:.17g}", count, a.numel(), worst,
                     a.reshape({-1})[worst].item<double>(), b.reshape({-1})[worst].item<double>());
}

const char* text_of(Delivery delivery) {
  return delivery == Delivery::kDirect ? "direct" : delivery == Delivery::kMessages ? "messages" : "two groups";
}

}  // namespace

CanonicalCase draw_canonical(const OpCase& op_case, Reach reach, bool gradients, bool special_values) {
  const auto dtype =
      *rc::gen::element(c10::kFloat, c10::kDouble, op_case.is(OpCase::kWide) ? c10::kFloat : c10::kBFloat16);
  Inputs inputs(dtype, false, reach);
  CanonicalCase trial{make_call(op_case.called, op_case.draw(inputs))};
  // What draws refuses numbers that are no probabilities, on the rank that has them.
  if (special_values && !op_case.is(OpCase::kOwnPeer)) plant_special_values(trial.call);
  trial.axes = draw_axes();
  trial.batch_rows = draw_batch(trial.call);
  trial.rounded_levels = *rc::gen::element<int64_t>(0, 0, 1, 2, 6);
  trial.delivery = *rc::gen::weightedElement<Delivery>(
      {{4, Delivery::kDirect}, {1, Delivery::kMessages}, {1, Delivery::kTwoGroups}});
  trial.seed = *rc::gen::arbitrary<uint64_t>();
  const auto world = simulated_world(trial.axes);
  const auto& mesh = world->mesh(trial.axes);
  auto operands = tensors_of(trial.call);
  for (size_t i = 0; i < operands.size(); ++i) {
    trial.operands.push_back(draw_operand(mesh, operands[i], op_case.is(OpCase::kDense) || trial.call.writes(i)));
    if (is_sum(trial.operands[i]) && operands[i].is_floating_point()) operands[i] = operands[i] + 0;
  }
  trial.call.arguments = with_tensors(trial.call, operands);
  if (!gradients) return trial;
  trial.functions.first = draw_weights(on_one_rank(trial).tensors);
  if (drawn(*rc::gen::inRange(0, 4)) == 3) trial.functions.second = draw_weights(tensors_of(trial.call));
  for (const auto* weights : {&trial.functions.first, &trial.functions.second})
    for (const auto& weight : *weights) trial.weight_places.push_back(draw_operand(mesh, weight, true));
  return trial;
}

CanonicalOutcome on_one_rank(const CanonicalCase& trial, std::shared_ptr<const RuleSet> rules) {
  auto whole = trial;
  whole.axes = {{"one", 1}};
  for (auto* operands : {&whole.operands, &whole.weight_places})
    for (auto& operand : *operands) operand.placements = {Placement::replicate()};
  register_backend();
  return in_world(canonical_options(whole, std::move(rules)), whole);
}

std::vector<CanonicalOutcome> on_the_mesh(const CanonicalCase& trial, std::shared_ptr<const RuleSet> rules) {
  auto options = canonical_options(trial, std::move(rules));
  if (trial.seed % 2 == 0) options.one_round_bytes = 0;
  const bool alone = options.rank_count == 1;
  if (trial.delivery == Delivery::kTwoGroups && !alone)
    return in_two_groups(options, trial.seed, [&](World& world) { return outcome_on(world.mesh(trial.axes), trial); });
  if (trial.delivery == Delivery::kMessages) options.transport = std::make_shared<SimulatedTransport>(trial.seed);
  return {in_world(std::move(options), trial)};
}

std::string bit_difference(const CanonicalOutcome& actual, const CanonicalOutcome& expected) {
  if (actual.refusal.find("written in place would have to move") != std::string::npos) return {};
  if (actual.refusal != expected.refusal)
    return fmt::format("is refused with \"{}\" for \"{}\"", actual.refusal, expected.refusal);
  if (actual.tensors.size() != expected.tensors.size()) return "has another number of results";
  for (size_t r = 0; r < actual.tensors.size(); ++r) {
    const auto &a = actual.tensors[r], &b = expected.tensors[r];
    if (a.defined() != b.defined()) return fmt::format("result {} is {}", r, a.defined() ? "there" : "missing");
    const auto what = a.defined() ? values_that_differ(a, b) : "";
    if (!what.empty()) return fmt::format("result {} {}", r, what);
  }
  return {};
}

std::string describe(const CanonicalCase& trial) {
  const auto world = simulated_world(trial.axes);
  const auto& mesh = world->mesh(trial.axes);
  std::string text = op_name(trial.call.op) + "(";
  for (size_t i = 0; i < trial.operands.size(); ++i) {
    const auto tensor = trial.call.tensor(i);
    text += c10::str(i ? ", " : "", tensor.scalar_type(), tensor.sizes(), trial.operands[i].turned ? "^T " : " ",
                     Layout(mesh, trial.operands[i].placements).text());
  }
  for (const auto& value : trial.call.arguments)
    if (value.isScalar() || value.isIntList() || value.isBool()) text += c10::str(", ", value);
  return fmt::format("{}) on mesh {}, batch {}, rounded levels {}, {} (seed {}){}", text, mesh.text(), trial.batch_rows,
                     trial.rounded_levels, text_of(trial.delivery), trial.seed,
                     trial.functions.first.empty()    ? ""
                     : trial.functions.second.empty() ? ", gradients"
                                                      : ", second gradients");
}

int canonical_case_count(const OpCase& op_case) {
  static const std::set<std::string_view> sums = {
      "sum", "sum.dim_IntList", "mean", "mean.dim", "mesh::weight_gradient", "embedding_dense_backward", "mesh::adamw"};
  return case_count(sums.contains(op_case.op) ? 2500 : 80);
}

void canonical_bits_equal_one_rank(const OpCase& op_case, Reach reach, bool gradients,
                                   std::shared_ptr<const RuleSet> rules) {
  const auto trial = draw_canonical(op_case, reach, gradients, true);
  // Rules that are tried may be wrong: one rank has the built-in ones, but for an op that they do not know.
  const bool is_known =
      built_in_rules(lockstep::Numerics::kCanonical)->find(op_case.op) || !rules || !rules->find(op_case.op);
  const auto expected = on_one_rank(trial, is_known ? nullptr : rules);
  if (gradients && trial.functions.first.empty()) return;
  bool compared = expected.refusal.empty();
  for (const auto& actual : on_the_mesh(trial, rules)) {
    const auto what = bit_difference(actual, expected);
    if (!what.empty()) RC_FAIL(describe(trial) + ": " + what);
    compared &= actual.refusal.empty();
  }
  if (compared) ++compared_cases()[op_case.op];
}

}  // namespace lockstep::testing
