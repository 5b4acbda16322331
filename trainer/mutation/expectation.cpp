#include "trainer/mutation/expectation.h"

#include "runtime/context/world.h"

namespace lockstep::trainer {
namespace {

using Kind = Site::Kind;

Expectation of_op(const Mutant& mutant, const char* kind) {
  const auto& site = mutant.site;
  Expectation expected{.kind = kind, .id = site_key(site.id), .rule = site.rule};
  if (!site.is_partial && site.kind != Kind::kOperand) expected.ranks = mutant.ranks;
  return expected;
}

/// The ranks that the fault's rank communicates with.
std::vector<int> group_of(const Mutant& mutant) {
  if (mutant.ranks.empty()) return {};
  World world({.rank_count = static_cast<int>(parse_mesh(mutant.setup.mesh).ranks())});
  const auto& mesh = world.mesh(mesh_axes(parse_mesh(mutant.setup.mesh)));
  const int axis = mesh.find_axis(mutant.site.axis);
  return axis < 0 ? std::vector<int>{} : mesh.group(mutant.ranks[0], axis);
}

/// What one rank receives of a sum in two rounds, others receive from it.
Expectation of_move(const Mutant& mutant) {
  const auto& site = mutant.site;
  const bool crosses = !site.collective.empty();
  Expectation expected{.kind = crosses ? "collective" : "local move", .id = site_key(site.id)};
  expected.axis = site.axis;
  expected.collective = crosses ? site.collective : "slice or copy";
  if (crosses) expected.group = group_of(mutant);
  const bool is_passed_on = site.kind == Kind::kPieces && site.collective == "all_reduce";
  if (!site.is_partial && !is_passed_on) expected.ranks = mutant.ranks;
  return expected;
}

/// What was written to the optimizer's state between two steps shows when the update has read it; run again from the
/// state that was right the step agrees.
Expectation of_state(const Mutant& mutant) {
  const bool is_slot = mutant.site.tensor != mutant.site.id.module;
  const bool is_read_first = is_slot && !mutant.resumes && mutant.step > 1 && mutant.step <= kMutationSteps;
  if (is_read_first)
    return {.module = mutant.site.id.module, .value = "a write to the optimizer's state", .is_transient = true};
  if (!is_slot) return {.kind = "start", .module = mutant.site.id.module};
  return {.kind = "start", .value = " of " + mutant.site.id.module};
}

/// What microbatches add is looked at when it is joined.
Expectation of_gradient(const Mutant& mutant) {
  const auto& site = mutant.site;
  Expectation expected{.kind = "joined", .module = site.tensor};
  if (!site.is_partial) expected.ranks = mutant.ranks;
  return expected;
}

Expectation of_what(const Mutant& mutant) {
  const auto& site = mutant.site;
  switch (site.kind) {
    case Kind::kOp:
    case Kind::kArgument:
    case Kind::kDraw:
      return of_op(mutant, "op");
    case Kind::kOperand:
      return of_op(mutant, "operand");
    case Kind::kMove:
    case Kind::kPieces:
      return of_move(mutant);
    case Kind::kState:
      return of_state(mutant);
    case Kind::kNumber:
      return {.kind = "number", .value = site.tensor};
    case Kind::kGradient:
      return of_gradient(mutant);
    case Kind::kBatch:
      return {.kind = "data"};
    case Kind::kRate:
      return {.kind = "number", .value = "learning_rate"};
    case Kind::kSaved:
      return {.value = "digest"};
    case Kind::kMetadata:
      return {.value = site.tensor == "learning_rate" ? "learning rate" : site.tensor == "state" ? "digest" : "sample"};
  }
  return {};
}

bool fits(const std::string& wanted, const std::string& named) { return wanted.empty() || wanted == named; }

/// "step 2, microbatch 0, ..." without its step.
bool is_id(const std::string& wanted, const std::string& named) {
  if (wanted.empty()) return true;
  return wanted.substr(wanted.find(',')) == named.substr(std::min(named.find(','), named.size()));
}

}  // namespace

/// What does not come back leaves nothing to look at but that it did not.
Expectation expectation_of(const Mutant& mutant) {
  if (mutant.is_transient) return {.is_transient = true};
  return of_what(mutant);
}

bool is_named(const Expectation& expected, const Blame& blame, const std::string& text) {
  return fits(expected.kind, blame.kind) && is_id(expected.id, blame.id) && fits(expected.rule, blame.rule) &&
         fits(expected.collective, blame.collective) && fits(expected.axis, blame.axis) &&
         fits(expected.module, blame.module) && (expected.group.empty() || expected.group == blame.group) &&
         (expected.ranks.empty() || expected.ranks == blame.ranks) && text.find(expected.value) != std::string::npos &&
         expected.is_transient == blame.transient;
}

}  // namespace lockstep::trainer
