#pragma once
#include "models/families/gpt2.h"
#include "models/families/llama.h"
#include "trainer/step/training_run.h"

namespace lockstep::testing {

/// A job on small tensors: 12 sequences of 12 tokens, in the default numerics (canonical). Their sums are single
/// leaves, which no mesh cuts: positions and features are gathered.
inline trainer::Job small_job() {
  trainer::Job job;
  job.training.seq_len = 12;
  job.training.local_batch_size = 12;
  job.training.global_batch_size = 12;
  job.parallelism.data_parallel_shard_degree = 1;
  job.debug.seed = 7;
  return job;
}

/// The same in native numerics, for what is of it alone: its traffic, its bounds, GPUs.
inline trainer::Job native_job() {
  auto job = small_job();
  job.numerics.mode = "native";
  return job;
}

/// A Llama with grouped heads, small enough that a step takes milliseconds; for 12 tokens out of 29.
inline models::LlamaOptions small_llama_options() {
  models::LlamaOptions options;
  options.width = 24;
  options.layers = 2;
  options.heads = 6;
  options.key_value_heads = 3;
  options.hidden = 36;
  options.vocabulary = 29;
  options.length = 12;
  return options;
}

/// A GPT-2 of that size, with dropout.
inline models::Gpt2Options small_gpt2_options() {
  models::Gpt2Options options;
  options.width = 24;
  options.layers = 2;
  options.heads = 6;
  options.hidden = 36;
  options.vocabulary = 29;
  options.positions = 12;
  return options;
}

/// That Llama with dropout.
inline std::unique_ptr<models::Model> small_llama() {
  auto options = small_llama_options();
  options.dropout = 0.1;
  return std::make_unique<models::Llama>(options);
}

/// That model on a mesh, "dp_shard=2,tp=2"; `rules`: built-in ones if null.
inline trainer::TrainingRun::Options small_llama_on(const char* mesh, std::shared_ptr<const RuleSet> rules = nullptr) {
  trainer::TrainingRun::Options options;
  options.mesh = trainer::parse_mesh(mesh);
  options.make_model = small_llama;
  options.rules = std::move(rules);
  return options;
}

/// Tokens and labels that differ at every place and step; every fifth label is ignored, so that ranks hold different
/// numbers of valid tokens. Of a job that packs documents these have 300, 7, 600, 300, ... tokens.
inline trainer::TokenBatch batch_for(const trainer::Job& job, int64_t step, int64_t vocabulary = 29) {
  trainer::TokenBatch batch{job.training.global_batch_size, job.training.seq_len, {}, {}};
  batch.first_sample = (step - 1) * batch.rows;
  for (int64_t i = 0; i < batch.rows * batch.seq_len; ++i) {
    batch.tokens.push_back((i * 7 + step * 3) % vocabulary);
    batch.labels.push_back(i % 5 == 0 ? trainer::kIgnoredLabel : (i * 11 + step) % vocabulary);
    const bool begins = i % batch.seq_len == 0 || i % 907 == 300 || i % 907 == 307;
    if (job.training.pack_documents) batch.positions.push_back(begins ? 0 : batch.positions.back() + 1);
  }
  return batch;
}

}  // namespace lockstep::testing
