#pragma once
#include "runtime/context/world.h"
#include "tests/support/small_models.h"

namespace lockstep::testing {

/// A mesh with cp, and how a job trains on it.
struct ContextTrial {
  const char* mesh;
  int64_t length;
  int64_t local_batch = 2;
  const char* dtype = "float32";
  const char* recompute = "none";
  const char* schedule = "1F1B";

  trainer::Job applied_to(trainer::Job job) const {
    job.training.seq_len = length;
    job.training.local_batch_size = local_batch;
    job.training.mixed_precision_param = dtype;
    job.activation_checkpoint.mode = recompute;
    job.parallelism.pipeline_parallel_schedule = schedule;
    return job;
  }
};

/// Of a small Llama whose heads four ranks divide, and its batch, for closed forms of what travels on the axis cp.
struct ContextTraffic {
  static constexpr int64_t kWidth = 32, kLayers = 3, kRows = 4;

  int64_t length;

  /// Of one native step of `job`, whose sizes this gives, on so many ranks of cp.
  Traffic of_step(trainer::Job job, int64_t ranks, bool meta) const {
    job.numerics.mode = "native";
    job.training.seq_len = length;
    job.training.global_batch_size = job.training.local_batch_size = kRows;
    job.parallelism.strict = true;  // nothing moves without being asked to
    trainer::TrainingRun::Options options;
    options.mesh.cp = ranks;
    options.meta = meta;
    options.make_model = [length = length] {
      models::LlamaOptions sizes;
      sizes.width = kWidth, sizes.layers = kLayers, sizes.heads = sizes.key_value_heads = 4, sizes.hidden = 64;
      sizes.vocabulary = 29, sizes.length = length;
      return std::make_unique<models::Llama>(sizes);
    };
    trainer::TrainingRun run(job, options);
    run.world().traffic().clear();
    run.step(1, batch_for(job, 1), 1e-3);
    return run.world().traffic();
  }

  /// Bytes of what a rank has of queries, keys or values.
  double part(int64_t ranks) const {
    return static_cast<double>(4 * kRows * length * kWidth) / static_cast<double>(ranks);
  }
};

}  // namespace lockstep::testing
