#pragma once
#include <string>

#include "tests/support/small_models.h"
#include "trainer/job/batching.h"
#include "trainer/recording/replayed_run.h"

/// Small runs that are recorded.
namespace lockstep::testing {

struct Setup {
  const char* mesh;
  const char* numerics = "canonical";
  int64_t microbatches = 1;
  bool recomputes = false;
  const char* dtype = "float32";
  bool packs = false;
};

inline trainer::Job job_of(const Setup& setup, const std::string& folder) {
  auto job = small_job();
  const auto mesh = trainer::parse_mesh(setup.mesh);
  trainer::set_mesh(job, mesh);
  job.numerics.mode = setup.numerics;
  job.training.mixed_precision_param = setup.dtype;
  job.training.pack_documents = setup.packs;
  job.training.global_batch_size = 24;
  job.training.local_batch_size = 24 / mesh.data_parallel() / setup.microbatches;
  job.parallelism.pipeline_parallel_microbatch_size = job.training.local_batch_size;
  job.activation_checkpoint.mode = setup.recomputes ? "full" : "none";
  job.record.folder = folder;
  job.record.state_every = 2;
  return job;
}

/// Documents begin within samples, however short these are.
inline trainer::TokenBatch recorded_batch(const trainer::Job& job, int64_t step) {
  auto batch = batch_for(job, step);
  for (size_t i = 0; i < batch.positions.size(); ++i) {
    const bool begins = i % static_cast<size_t>(batch.seq_len) == 0 || i % 7 == 3;
    batch.positions[i] = begins ? 0 : batch.positions[i - 1] + 1;
  }
  return batch;
}

inline trainer::TrainingRun::Options options_of(const trainer::Job& job) {
  trainer::TrainingRun::Options options;
  options.mesh = trainer::mesh_of(job);
  options.make_model = small_llama;
  options.as_messages = true;
  return options;
}

inline std::string text_of(const trainer::ReplayOutcome& outcome) {
  auto text = outcome.first_difference ? outcome.first_difference->text() : "";
  for (const auto& scalar : outcome.differing_scalars) text += "\n" + scalar;
  return text + outcome.stopped_by;
}

}  // namespace lockstep::testing
