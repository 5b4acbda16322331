#pragma once
#include <string>

#include "trainer/job/job.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// A small run that faults are planted in.
struct Setup {
  std::string mesh = {};  ///< "dp_shard=2,tp=2"
  int64_t microbatches = 1;
  bool recomputes = false;
  std::string model = "llama3", optimizer = "AdamW", dtype = "float32";

  /// "dp_shard=2,tp=2, 2 microbatches, recomputed, gpt2, SGD, bfloat16": without what is usual.
  std::string text() const;
  friend bool operator==(const Setup&, const Setup&) = default;
};

inline constexpr int64_t kMutationVocabulary = 64;
/// How many steps the runs have.
inline constexpr int64_t kMutationSteps = 3;

/// A model of two layers with dropout; its checkpoints go to `folder`.
Job job_of(const Setup& setup, const std::string& folder);

/// On the setup's mesh, with raw gradients kept.
TrainingRun::Options options_of(const Setup& setup);

}  // namespace lockstep::trainer
