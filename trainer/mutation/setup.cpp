#include "trainer/mutation/setup.h"

#include <fmt/format.h>

#include "core/mesh_text.h"

namespace lockstep::trainer {
namespace {

void take_sizes(const Setup& setup, ModelSection& model) {
  model.name = setup.model;
  model.width = 64, model.layers = 2, model.heads = 4, model.hidden = 128;
  if (setup.model == "llama3" || setup.model == "moe") model.key_value_heads = 2;
  if (setup.model == "moe") {
    model.experts.count = 4, model.experts.hidden = 64;
    model.experts.balance_rate = 0.1, model.experts.auxiliary_loss = 0.1;
  }
  model.vocabulary = kMutationVocabulary, model.dropout = 0.1;
}

void take_batch(const Setup& setup, const MeshDegrees& degrees, TrainingSection& training) {
  training.seq_len = 64;  // two leaves of a sum over positions, so that tp and cp cut them
  training.global_batch_size = degrees.data_parallel() == 3 ? 6 : 8;
  training.local_batch_size = training.global_batch_size / degrees.data_parallel() / setup.microbatches;
  training.mixed_precision_param = setup.dtype;
}

}  // namespace

std::string Setup::text() const {
  auto text = mesh;
  if (microbatches > 1) text += fmt::format(", {} microbatches", microbatches);
  if (recomputes) text += ", recomputed";
  const Setup usual;
  for (const auto& [mine, theirs] :
       {std::pair(model, usual.model), std::pair(optimizer, usual.optimizer), std::pair(dtype, usual.dtype)})
    if (mine != theirs) text += ", " + mine;
  return text;
}

Job job_of(const Setup& setup, const std::string& folder) {
  Job job;
  take_sizes(setup, job.model);
  const auto degrees = parse_mesh(setup.mesh);
  set_mesh(job, degrees);
  take_batch(setup, degrees, job.training);
  job.optimizer.name = setup.optimizer, job.optimizer.lr = 1e-2;
  if (setup.optimizer == "SGD") job.optimizer.momentum = 0.9;
  job.lr_scheduler.warmup_steps = 2;  // so that a step's rate is not the one before
  job.activation_checkpoint.mode = setup.recomputes ? "full" : "none";
  job.checkpoint.enable = true, job.checkpoint.interval = 1;
  job.job.dump_folder = folder;
  job.debug.seed = 5;
  return job;
}

TrainingRun::Options options_of(const Setup& setup) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(setup.mesh);
  options.keep_gradients = true;
  return options;
}

}  // namespace lockstep::trainer
