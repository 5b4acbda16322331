#include "trainer/mutation/trials/one_op_check.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "consistency/difference.h"
#include "consistency/traced_op.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/backend.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/mutation/planted_fault.h"
#include "trainer/mutation/trials/faulty_run.h"

namespace lockstep::trainer {
namespace {

constexpr double kTolerance = 1e-5;
constexpr const char* kTwoRanks = "tp=2";

/// Each tensor of an argument, in a list or by itself, as `change` makes it.
template <class Change>
c10::IValue with_tensors(const c10::IValue& argument, const Change& change) {
  if (argument.isTensor()) return argument.toTensor().defined() ? c10::IValue(change(argument.toTensor())) : argument;
  if (!argument.isTensorList()) return argument;
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : argument.toTensorVector()) list.push_back(change(tensor));
  return list;
}

/// REQUIRES: a dimension.
at::Tensor cut(const at::Tensor& whole, const Mesh& mesh) {
  auto placements = Layout::replicated(mesh).placements();
  const bool is_cut = whole.size(0) % mesh.rank_count() == 0 && mesh.rank_count() > 1;
  if (is_cut) placements[0] = Placement::shard(0);
  return distribute(whole, Layout(mesh, placements));
}

/// What a forward says about the op: where it is, whose rows it has, what it draws from.
class ForwardScopes {
 public:
  ForwardScopes(RunContext& context, const Mutant& mutant, const Job& job)
      : use_(context),
        phase_(Phase::kForward),
        random_(static_cast<uint64_t>(job.debug.seed)),
        batch_(derive_batching(job, parse_mesh(mutant.setup.mesh)).rows(mutant.site.id.microbatch)) {
    context.begin_microbatch(1, mutant.site.id.microbatch);
    if (!mutant.site.id.module.empty()) module_.emplace(mutant.site.id.module);
  }

 private:
  RunContext::Use use_;
  PhaseScope phase_;
  RandomScope random_;
  BatchScope batch_;
  std::optional<ModuleScope> module_;
};

World::Options world_of(const char* mesh, const Job& job, PlantedFault* fault) {
  TrainingRun::Options options;
  if (fault) fault->add_to(options, job);
  return {.rank_count = static_cast<int>(rank_count(parse_mesh_axes(mesh))),
          .numerics = Numerics::kCanonical,
          .rules = options.rules};
}

std::vector<at::Tensor> plain(const torch::jit::Stack& results) {
  std::vector<at::Tensor> all;
  const auto take = [&](const at::Tensor& tensor) {
    all.push_back(whole_value(tensor));
    return tensor;
  };
  for (const auto& result : results) with_tensors(result, take);
  return all;
}

/// The first call of an op on ranks of two: of several calls in the run, the test has one.
Mutant as_in_a_test(Mutant mutant) {
  mutant.site.id.occurrence = 0;
  return mutant;
}

}  // namespace

void OneOp::before_op(const OpEvent& event) {
  if (op_ || site_key(event.id) != key_) return;
  op_ = event.op;
  for (const auto& argument : event.arguments) arguments_.push_back(with_tensors(argument, whole_value));
}

std::vector<at::Tensor> OneOp::results_on(const char* mesh, const Mutant& of, const Mutant* mutant) const {
  const at::NoGradGuard no_grad;
  const auto job = job_of(of.setup, "");
  std::optional<PlantedFault> fault;
  if (mutant) fault.emplace(*mutant);
  World world(world_of(mesh, job, fault ? &*fault : nullptr));
  const auto& ranks = world.mesh(mesh);
  RunContext context;
  const ForwardScopes scopes(context, of, job);
  std::optional<ObserverScope> planted;
  if (fault) planted.emplace(world.observers(), *fault), fault->begin_step(1, {}, 0, {});
  torch::jit::Stack stack;
  for (const auto& argument : arguments_)
    stack.push_back(
        with_tensors(argument, [&](const at::Tensor& whole) { return whole.dim() == 0 ? whole : cut(whole, ranks); }));
  op_->callBoxed(stack);
  return plain(stack);
}

namespace {

OneOp op_of(const Mutant& mutant) {
  OneOp op(mutant.site);
  const auto job = job_of(mutant.setup, "");
  TrainingRun run(job, options_of(mutant.setup));
  const ObserverScope watched(run.world().observers(), op);
  run.step(1, batch_at(job, 0), LearningRateSchedule(job).learning_rate(1));
  return op;
}

}  // namespace

bool is_seen_by_one_op(const Mutant& mutant) {
  const auto& ranks = mutant.ranks;
  const bool is_here = ranks.empty() || std::any_of(ranks.begin(), ranks.end(), [](int rank) { return rank < 2; });
  if (mutant.site.id.phase != Phase::kForward || !is_here) return false;
  const auto op = op_of(mutant);
  if (!op.has_come()) return false;
  std::vector<at::Tensor> expected;
  try {
    expected = op.results_on("", mutant, nullptr);
    op.results_on(kTwoRanks, mutant, nullptr);
  } catch (const std::exception&) {  // it cannot run alone
    return false;
  }
  try {
    const auto wrong = as_in_a_test(mutant);
    const auto given = op.results_on(kTwoRanks, mutant, &wrong);
    for (size_t i = 0; i < given.size(); ++i)
      if (!difference_of(given[i], expected.at(i), kTolerance).agrees()) return true;
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

}  // namespace lockstep::trainer
