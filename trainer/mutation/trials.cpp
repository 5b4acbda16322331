#include "trainer/mutation/trials.h"

#include <cmath>

#include "consistency/blame_observer.h"
#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/tensor/tensor_bytes.h"
#include "trainer/mutation/planted_fault.h"
#include "trainer/mutation/survey.h"
#include "trainer/state/replicas.h"
#include "trainer/verify/mesh_comparison.h"
#include "trainer/verify/suite_batch.h"

namespace lockstep::trainer {
namespace {

constexpr double kRate = 1e-2, kLossTolerance = 1e-3, kModuleTolerance = 1e-3, kOpTolerance = 1e-5;
constexpr int64_t kVocabulary = 64;

Stage stage(std::string mesh, int64_t microbatches, bool recomputes = false) {
  return {std::move(mesh), microbatches, recomputes, {}};
}

Job job_of(const std::string& mesh, int64_t microbatches, bool recomputes) {
  Job job;
  job.model.width = 64, job.model.layers = 2, job.model.heads = 4, job.model.key_value_heads = 2;
  job.model.hidden = 128, job.model.vocabulary = kVocabulary, job.model.dropout = 0.1;
  const auto degrees = parse_mesh(mesh);
  for (const auto& axis : MeshDegrees::axes()) job.parallelism.*axis.degree = degrees.*axis.size;
  job.training.seq_len = 64;  // two leaves of a sum over positions, so that tp and cp cut them
  job.training.global_batch_size = degrees.data_parallel() == 3 ? 6 : 8;
  job.training.local_batch_size = job.training.global_batch_size / degrees.data_parallel() / microbatches;
  job.activation_checkpoint.mode = recomputes ? "full" : "none";
  job.debug.seed = 5;
  return job;
}

Job job_of(const Mutant& mutant) { return job_of(mutant.mesh, mutant.microbatches, mutant.recomputes); }

TrainingRun::Options options_on(const std::string& mesh) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.keep_gradients = true;
  return options;
}

/// Every bit that a step leaves on any rank.
std::string fingerprint(const StepResult& result, const TrainingState& state) {
  auto text = fmt::format("{:a} {:a}", result.loss, result.gradient_norm);
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors())
      for (const auto& shard : sharded(tensor).shards()->whole())
        text += tensor_digest(bytes_of(shard.contiguous())).text();
  return text;
}

void add_state_sites(const TrainingState& state, std::vector<Site>& sites) {
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      auto& site = sites.emplace_back();
      site.kind = Site::Kind::kState, site.id.module = entry.name, site.tensor = prefix + entry.name;
    }
}

/// Whether a report names what the mutant declared.
bool is_exact(const Expectation& expected, const Blame& blame) {
  const auto fits = [](const std::string& wanted, const std::string& named) {
    return wanted.empty() || wanted == named;
  };
  return fits(expected.kind, blame.kind) && fits(expected.op, blame.op) && fits(expected.phase, blame.phase) &&
         fits(expected.module, blame.module) && fits(expected.collective, blame.collective) &&
         fits(expected.axis, blame.axis);
}

}  // namespace

/// What a stage's run gives without a fault.
struct Trials::Right {
  std::vector<std::string> fingerprints;  ///< after each step
  std::vector<double> losses;
  ForwardOutputs outputs;
};

Trials::Trials() {
  stages_ = {stage("dp_shard=2,tp=2", 1),  stage("dp_replicate=2,dp_shard=2", 2), stage("tp=2", 2, true),
             stage("dp_shard=3", 2, true), stage("dp_replicate=2,tp=2", 2, true), stage("cp=2,tp=2", 1)};
  for (auto& stage : stages_) {
    const auto job = job_of(stage.mesh, stage.microbatches, stage.recomputes);
    TrainingRun run(job, options_on(stage.mesh));
    auto& right = *rights_.emplace_back(std::make_unique<Right>());
    Survey survey;
    for (int64_t step = 1; step <= kSteps; ++step) {
      const ObserverScope outputs(run.world().observers(), right.outputs);
      std::optional<ObserverScope> watched;
      if (step == 1) watched.emplace(run.world().observers(), survey);
      const auto result = run.step(step, suite_batch(job, kVocabulary, step), kRate);
      right.fingerprints.push_back(fingerprint(result, run.state()));
      right.losses.push_back(result.loss);
      if (step > 1) continue;
      stage.sites = survey.sites();
      for (const auto& [name, value] : result.scalars)
        stage.sites.push_back({.kind = Site::Kind::kNumber, .tensor = name});
    }
    add_state_sites(run.state(), stage.sites);
  }
}

Trials::~Trials() = default;

const Trials::Right& Trials::right_of(const Mutant& mutant) const {
  for (size_t s = 0; s < stages_.size(); ++s)
    if (stages_[s].mesh == mutant.mesh && stages_[s].microbatches == mutant.microbatches) return *rights_[s];
  LOCKSTEP_CHECK(false, "no stage has {}", mutant.text());
}

Trial Trials::run(const Mutant& mutant) const {
  Trial trial{mutant};
  run_alone(trial);
  if (!trial.is_equivalent) run_verified(trial);
  return trial;
}

void Trials::run_alone(Trial& trial) const {
  const auto& right = right_of(trial.mutant);
  const auto job = job_of(trial.mutant);
  PlantedFault fault(trial.mutant);
  auto options = options_on(trial.mutant.mesh);
  fault.add_to(options, job);
  auto& others = trial.others;
  others = {{"replica hashes", false}, {"loss curve", false}, {"module outputs", false}, {"forward ops", false}};
  bool is_same = true;
  try {
    TrainingRun run(job, options);
    run.set_listener(&fault);
    ForwardOutputs outputs;
    const ObserverScope planted(run.world().observers(), fault), watched(run.world().observers(), outputs);
    for (int64_t step = 1; step <= kSteps; ++step) {
      fault.before_step(run, step);
      const auto result = run.step(step, suite_batch(job, kVocabulary, step), kRate);
      const auto index = static_cast<size_t>(step - 1);
      is_same &= fingerprint(result, run.state()) == right.fingerprints[index];
      others["replica hashes"] |= !replica_difference(run.state(), {}).empty();
      others["loss curve"] |=
          std::abs(result.loss - right.losses[index]) > kLossTolerance * std::abs(right.losses[index]);
    }
    others["module outputs"] = outputs.module_differs(right.outputs, kModuleTolerance);
    others["forward ops"] = outputs.op_differs(right.outputs, trial.mutant.site, kOpTolerance);
  } catch (const std::exception&) {  // each of the others would see that the run ended
    is_same = false;
    for (auto& [name, sees] : others) sees = true;
  }
  trial.is_equivalent = is_same;
}

void Trials::run_verified(Trial& trial) const {
  const auto job = job_of(trial.mutant);
  PlantedFault fault(trial.mutant);
  auto options = options_on(trial.mutant.mesh);
  fault.add_to(options, job);
  try {
    TrainingRun run(job, options);
    run.set_listener(&fault);
    const ObserverScope planted(run.world().observers(), fault);
    StepVerifier verifier(job, options_on(trial.mutant.mesh), run);
    for (trial.at_step = 1; trial.at_step <= kSteps; ++trial.at_step) {
      fault.before_step(run, trial.at_step);
      const auto check = verifier.check(trial.at_step, suite_batch(job, kVocabulary, trial.at_step), kRate);
      if (check.agrees()) continue;
      trial.caught_by = check.blame->kind == "start" ? "start" : "step";
      trial.is_exact = is_exact(trial.mutant.expected, *check.blame);
      trial.report = check.difference + "\n" + check.blame->text();
      return;
    }
  } catch (const std::exception& error) {
    trial.caught_by = "error";
    trial.report = error.what();
  }
}

void Trials::run_clean_on(const Stage& stage, bool is_canonical, int64_t steps, Clean& clean) {
  auto job = job_of(stage.mesh, stage.microbatches, stage.recomputes);
  if (!is_canonical) job.numerics.mode = kNativeMode;
  job.verify.modes.emplace_back(kOpsMode);
  job.verify.sample = 1;
  MeshComparison comparison(job, options_on(stage.mesh));
  for (int64_t step = 1; step <= steps; ++step, ++clean.steps) {
    const auto check = comparison.check(step, suite_batch(job, kVocabulary, step), kRate);
    clean.alarms += !check.agrees();
    clean.values += check.comparison.values;
    if (step == steps) clean.cases += check.ops->compared_ops + check.ops->compared_moves;
  }
}

Trials::Clean Trials::run_clean(int64_t steps_of_each) const {
  Clean clean;
  auto stages = stages_;
  stages.push_back(stage("tp=4", 1));
  stages.push_back(stage("dp_replicate=2,dp_shard=2,tp=2", 1, true));
  for (const auto& stage : stages) {
    ++clean.meshes;
    run_clean_on(stage, /*is_canonical=*/true, steps_of_each, clean);
    run_clean_on(stage, /*is_canonical=*/false, std::max<int64_t>(1, steps_of_each / 8), clean);
  }
  return clean;
}

}  // namespace lockstep::trainer
