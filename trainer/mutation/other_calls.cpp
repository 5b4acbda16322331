#include "trainer/mutation/other_calls.h"

#include <ATen/Functions.h>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

/// As a fault of kind kArgument leaves it.
double changed_number(const Mutant& mutant, double value) {
  if (mutant.change == Change::kPlus) return value + mutant.amount;
  if (mutant.change == Change::kZero) return 0;
  return value * mutant.amount;
}

/// A row's function has no object of its own.
struct Planted {
  static inline thread_local const Mutant* mutant = nullptr;
  static inline thread_local FaultyCalls* faulty = nullptr;
  static inline thread_local LocalFunction right = nullptr;

  static void run_right(const LocalCall& call, torch::jit::Stack& stack) {
    if (right) return right(call, stack);
    call.op.callBoxed(stack);
  }

  static void run(const LocalCall& call, torch::jit::Stack& stack) {
    const auto rank = call.plan.results.at(0)->layout.mesh().local_ranks()[call.index];
    if (!faulty->is_due(call.context.last_op_id(), rank)) return run_right(call, stack);
    if (mutant->site.kind == Site::Kind::kArgument) {
      change_argument(stack[static_cast<size_t>(mutant->site.ordinal)]);
      return run_right(call, stack);
    }
    faulty->note_change();
    const bool by_rank = mutant->change == Change::kOtherRank;
    run_right({call.op, call.plan, call.index, call.context,
               call.stream + (by_rank ? call.index : static_cast<uint64_t>(mutant->amount))},
              stack);
  }

  static void change_argument(c10::IValue& argument) {
    const auto before = argument;
    if (argument.isInt()) argument = argument.toInt() + 1;
    if (before.isDouble()) argument = changed_number(*mutant, before.toDouble());
    if (before.isTensor()) {
      const auto& tensor = before.toTensor();
      const auto other = at::full({}, changed_number(*mutant, tensor.item<double>()), tensor.options());
      if (!at::equal(other, tensor)) faulty->note_change();
      argument = other;
    } else if (argument != before) {
      faulty->note_change();
    }
  }
};

}  // namespace

std::shared_ptr<const RuleSet> with_other_calls(const RuleSet& shipped, const Mutant& mutant, FaultyCalls& faulty) {
  const auto* found = shipped.find(mutant.site.id.op);
  LOCKSTEP_CHECK(found, "{} has no row", mutant.site.id.op);
  auto rule = *found;
  Planted::mutant = &mutant, Planted::faulty = &faulty, Planted::right = rule.local;
  rule.local = Planted::run;
  return shipped.with(rule);
}

}  // namespace lockstep::trainer
