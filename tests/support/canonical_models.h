#pragma once
#include "models/families/llama.h"
#include "tests/support/small_models.h"

/// Models whose sums have several leaves, for tests of canonical steps.
namespace lockstep::testing {

struct CanonicalModel {
  const char* name;
  int64_t length;
  bool tied;
  double dropout;
  int64_t key_value_heads;
  const char* compute = "float32";
  int64_t rounded_levels = 0;
};

inline constexpr int64_t kCanonicalVocabulary = 2047;  ///< several leaves, the last one short

/// Golden bits are held under these names: models are added, and left as they are.
inline constexpr CanonicalModel kCanonicalModels[] = {
    {"untied", 65, false, 0, 8},
    {"tied", 65, true, 0, 8},
    {"dropout, grouped heads", 33, false, 0.1, 4},
    {"long", 257, true, 0.1, 8},
    {"bfloat16", 65, true, 0.1, 8, "bfloat16"},
    {"bfloat16, rounded levels", 65, true, 0.1, 8, "bfloat16", 2},
};

inline std::unique_ptr<models::Model> make_canonical_model(const CanonicalModel& model) {
  models::LlamaOptions options;
  options.width = 96;
  options.layers = 2;
  options.heads = 8;
  options.key_value_heads = model.key_value_heads;
  options.hidden = 224;
  options.vocabulary = kCanonicalVocabulary;
  options.length = model.length;
  options.tied_head = model.tied;
  options.dropout = model.dropout;
  options.cut_between_leaves = true;
  return std::make_unique<models::Llama>(options);
}

/// A job for it, with the seed of small_job(). `local_batch`: sequences of a data-parallel rank in a microbatch.
inline trainer::Job canonical_job(const CanonicalModel& model, int64_t batch, int64_t local_batch) {
  auto job = small_job();
  job.numerics = {.mode = "canonical", .rounded_levels = model.rounded_levels};
  job.training.seq_len = model.length;
  job.training.global_batch_size = batch;
  job.training.local_batch_size = local_batch;
  job.training.mixed_precision_param = model.compute;
  return job;
}

/// Options of a run of it on a mesh; `model` must outlive the run.
inline trainer::TrainingRun::Options canonical_options(const char* mesh, const CanonicalModel& model) {
  trainer::TrainingRun::Options options;
  options.mesh = trainer::parse_mesh(mesh);
  options.make_model = [&model] { return make_canonical_model(model); };
  return options;
}

}  // namespace lockstep::testing
