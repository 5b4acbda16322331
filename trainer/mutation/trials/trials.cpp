#include "trainer/mutation/trials/trials.h"

#include <algorithm>
#include <cmath>

#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/mutation/survey.h"
#include "trainer/mutation/trials/faulty_run.h"
#include "trainer/mutation/trials/forward_outputs.h"
#include "trainer/mutation/trials/one_op_check.h"
#include "trainer/mutation/trials/wrong_checkpoint.h"
#include "trainer/state/replicas.h"

namespace lockstep::trainer {
namespace {

constexpr double kLossTolerance = 1e-3, kModuleTolerance = 1e-3;

std::vector<Setup> setups_of_stages() {
  return {{.mesh = "dp_shard=2,tp=2"},
          {.mesh = "dp_replicate=2,dp_shard=2", .microbatches = 2, .optimizer = "SGD"},
          {.mesh = "tp=2", .microbatches = 2, .recomputes = true},
          {.mesh = "dp_shard=3", .microbatches = 2, .recomputes = true},
          {.mesh = "dp_replicate=2,tp=2", .microbatches = 2, .recomputes = true},
          {.mesh = "cp=2,tp=2"},
          {.mesh = "dp_shard=2,tp=2", .model = "gpt2"},
          {.mesh = "dp_shard=2,cp=2", .microbatches = 2, .model = "gpt2", .dtype = "bfloat16"},
          {.mesh = "dp_shard=2,tp=2", .microbatches = 2, .recomputes = true, .optimizer = "SGD", .dtype = "bfloat16"},
          {.mesh = "dp_shard=2,tp=2,ep=4", .microbatches = 2, .model = "moe"},
          {.mesh = "dp_shard=2,tp=2,ep=2,etp=2", .recomputes = true, .model = "moe", .dtype = "bfloat16"}};
}

std::string bits_of(const at::Tensor& tensor) {
  std::string text;
  for (const auto& shard : sharded(tensor).shards()->whole())
    text += tensor_digest(bytes_of(shard.contiguous())).text();
  return text;
}

std::string bits_of(const TrainingState& state) {
  std::string text;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) text += bits_of(tensor);
  return text;
}

/// Every bit that a step leaves on any rank, its raw gradients included.
std::string fingerprint(const StepResult& result, const TrainingState& state) {
  auto text = fmt::format("{:a} {:a} {:a}", result.loss, result.gradient_norm, result.valid_tokens);
  for (const auto& gradient : result.gradients) text += bits_of(gradient);
  return text + bits_of(state);
}

void add(std::vector<Site>& sites, Site::Kind kind, const std::string& tensor, const std::string& module = "") {
  auto& site = sites.emplace_back();
  site.kind = kind, site.tensor = tensor, site.id.module = module;
}

void add_places_between_steps(const TrainingState& state, const StepResult& result, std::vector<Site>& sites) {
  for (const auto& [name, value] : result.scalars) add(sites, Site::Kind::kNumber, name);
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors())
      add(sites, Site::Kind::kState, prefix + entry.name, entry.name);
  for (const char* what : {"rows", "tokens", "labels"}) add(sites, Site::Kind::kBatch, what);
  add(sites, Site::Kind::kRate, "learning_rate");
}

void add_places_of_checkpoint(const std::string& folder, std::vector<Site>& sites) {
  const Checkpoint checkpoint(folder);
  for (const auto& [name, record] : checkpoint.tensors()) add(sites, Site::Kind::kSaved, name);
  for (const char* what : {"sample", "learning_rate", "state"}) add(sites, Site::Kind::kMetadata, what);
}

}  // namespace

/// What a stage's run gives without a fault.
struct Trials::Right {
  std::vector<std::string> fingerprints;  ///< after each step
  std::string state;                      ///< bits at the end
  std::vector<double> losses;
  ForwardOutputs outputs;
};

Trials::Trials() {
  for (auto& setup : setups_of_stages()) prepare(stages_.emplace_back(SurveyedRun{std::move(setup), {}}));
}

Trials::~Trials() = default;

void Trials::prepare(SurveyedRun& stage) {
  const auto job = job_of(stage.setup, folder_of(rights_.size()));
  const Processes processes;
  TrainingRun run(job, options_of(stage.setup));
  RunCheckpoints checkpoints(job, processes, run);
  const LearningRateSchedule schedule(job);
  auto& right = *rights_.emplace_back(std::make_unique<Right>());
  Survey survey;
  const ObserverScope outputs(run.world().observers(), right.outputs);
  std::optional<ObserverScope> watched(std::in_place, run.world().observers(), survey);
  run.set_listener(&survey);
  for (int64_t step = 1; step <= kMutationSteps; ++step) {
    const auto rows = job.training.global_batch_size;
    const auto result = run.step(step, batch_at(job, (step - 1) * rows), schedule.learning_rate(step));
    right.fingerprints.push_back(fingerprint(result, run.state()));
    right.losses.push_back(result.loss);
    if (step > 1) continue;
    watched.reset(), run.set_listener(nullptr);
    stage.sites = survey.sites();
    add_places_between_steps(run.state(), result, stage.sites);
    add_places_of_checkpoint(checkpoints.save(step, rows, 0), stage.sites);
  }
  right.state = bits_of(run.state());
}

size_t Trials::stage_of(const Mutant& mutant) const {
  for (size_t s = 0; s < stages_.size(); ++s)
    if (stages_[s].setup == mutant.setup) return s;
  LOCKSTEP_CHECK(false, "no stage has {}", mutant.text());
}

/// Where the mutant's checkpoints are: the stage's, or one that was saved wrongly.
std::string Trials::folder_for(const Mutant& mutant) const {
  auto right = folder_of(stage_of(mutant));
  if (mutant.site.kind != Site::Kind::kSaved && mutant.site.kind != Site::Kind::kMetadata) return right;
  auto wrong = work_.file("mutant-" + std::to_string(mutant.number));
  std::filesystem::create_directories(wrong + "/checkpoint");
  save_wrongly(right + "/checkpoint/step-1", wrong + "/checkpoint/step-1", mutant);
  return wrong;
}

Trial Trials::run(const Mutant& mutant) const {
  Trial trial{.mutant = mutant};
  const auto folder = folder_for(mutant);
  run_alone(trial, folder);
  if (!trial.is_equivalent) trial.verdict = run_verified(mutant, folder);
  if (folder != folder_of(stage_of(mutant))) std::filesystem::remove_all(folder);
  return trial;
}

void Trials::run_alone(Trial& trial, const std::string& folder) const {
  auto& others = trial.others;
  others = {{"replica hashes", false}, {"loss curve", false}, {"module outputs", false}};
  try {
    run_steps(trial, folder);
  } catch (const std::exception&) {  // each of the others would see that the run ended
    trial.is_equivalent = false;
    for (auto& [name, sees] : others) sees = true;
  }
  others["replica hashes"] |= trial.replicas_step > 0;
  others["forward ops"] = is_seen_by_one_op(trial.mutant);
}

void Trials::run_steps(Trial& trial, const std::string& folder) const {
  const auto& right = *rights_[stage_of(trial.mutant)];
  FaultyRun faulty(trial.mutant, folder);
  faulty.load();
  auto& run = faulty.run();
  ForwardOutputs outputs;
  const ObserverScope watched(run.world().observers(), outputs);
  trial.is_equivalent = true;
  for (auto step = faulty.first_step(); step <= kMutationSteps; ++step) {
    faulty.before_step(step);
    const auto batch = faulty.batch(step);
    const auto result = run.step(step, batch, faulty.rate(step));
    const auto index = static_cast<size_t>(step - 1);
    trial.is_equivalent &= fingerprint(result, run.state()) == right.fingerprints[index];
    if (trial.replicas_step == 0 && !replica_difference(run.state(), {}).empty()) trial.replicas_step = step;
    trial.others["loss curve"] |=
        std::abs(result.loss - right.losses[index]) > kLossTolerance * std::abs(right.losses[index]);
  }
  faulty.before_step(kMutationSteps + 1);
  trial.is_equivalent &= bits_of(run.state()) == right.state;
  trial.others["module outputs"] = outputs.module_differs(right.outputs, kModuleTolerance);
  trial.changes = faulty.fault().changes();
}

std::string Trial::reason() const {
  if (is_equivalent && changes == 0) return "no value is another where the fault is";
  const auto where = fmt::format("{} tensors have other values where the fault is", changes);
  if (is_equivalent)
    return fmt::format("{}, and no bit of loss, gradients, norm or state of any rank differs in {} steps", where,
                       kMutationSteps);
  return is_caught() ? "" : where + ", and a later bit differs, but nothing that was compared";
}

CleanSteps Trials::run_clean(int64_t steps_of_each) const {
  std::vector<Setup> setups;
  for (const auto& stage : stages_) setups.push_back(stage.setup);
  setups.push_back({.mesh = "tp=4"});
  setups.push_back({.mesh = "dp_replicate=2,dp_shard=2,tp=2", .recomputes = true});
  return run_clean_steps(setups, steps_of_each);
}

}  // namespace lockstep::trainer
