// The bits of whole canonical steps on one device are those in tests/golden/: loss and gradient norm of each of two
// steps, and parameters and optimizer state after them. That meshes have the same bits is what bitwise_test.cpp shows.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/digest/digest.h"
#include "models/families/gpt2.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/canonical_models.h"
#include "tests/support/golden_lines.h"

namespace lockstep::trainer {
namespace {

using testing::CanonicalModel;
using testing::GoldenLines;

constexpr int64_t kBatch = 3;

/// A model's name as one word.
std::string word_of(std::string name) {
  std::erase(name, ',');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// Of the names and gathered bytes: as old as the goldens.
std::string digest_of(const TrainingState& state) {
  Digester digester;
  for (const auto& entry : state) {
    digester.update(entry.name);
    for (const auto& [prefix, tensor] : entry.tensors()) digester.update(bytes_of(gather(tensor).contiguous()));
  }
  return digester.result().text();
}

void add_steps(GoldenLines& lines, const std::string& name, const Job& job, const TrainingRun::Options& options,
               int64_t vocabulary = testing::kCanonicalVocabulary) {
  TrainingRun run(job, options);
  for (int64_t step = 1; step <= 2; ++step) {
    const auto batch = testing::batch_for(job, step, vocabulary);
    const auto result = run.step(step, batch, 1e-2);
    testing::add_line(lines, fmt::format("{}.step_{}.loss", name, step), fmt::format("{:a}", result.loss));
    testing::add_line(lines, fmt::format("{}.step_{}.norm", name, step), fmt::format("{:a}", result.gradient_norm));
  }
  testing::add_line(lines, name + ".state", digest_of(run.state()));
}

TrainingRun::Options on_one_device(const CanonicalModel& model) {
  return testing::canonical_options("one device", model);
}

/// Learned positions, LayerNorm, GELU, biases, dropout everywhere; sums of several leaves.
void add_gpt2(GoldenLines& lines) {
  constexpr int64_t kVocabulary = 259;
  const models::Gpt2Options gpt2{.width = 128,
                                 .layers = 2,
                                 .heads = 4,
                                 .hidden = 192,
                                 .vocabulary = kVocabulary,
                                 .positions = 96,
                                 .dropout = 0.1,
                                 .attention_dropout = 0.1,
                                 .cut_between_leaves = true};
  TrainingRun::Options options;
  options.mesh = parse_mesh("one device");
  options.make_model = [gpt2] { return std::make_unique<models::Gpt2>(gpt2); };
  auto job = testing::small_job();
  job.training.seq_len = 65;
  job.training.global_batch_size = job.training.local_batch_size = kBatch;
  add_steps(lines, "gpt2", job, options, kVocabulary);
}

/// Those by the models' names were written when parameters of one dimension never decayed.
Job golden_job(const CanonicalModel& model) {
  auto job = testing::canonical_job(model, kBatch, kBatch);
  job.optimizer.decay_1d = false;
  return job;
}

GoldenLines step_lines() {
  GoldenLines lines;
  for (const auto& model : testing::kCanonicalModels)
    add_steps(lines, word_of(model.name), golden_job(model), on_one_device(model));
  const auto& model = testing::kCanonicalModels[0];
  auto job = golden_job(model);
  job.optimizer.name = "SGD";
  job.optimizer.momentum = 0.9;
  add_steps(lines, word_of(model.name) + "_with_SGD", job, on_one_device(model));
  for (const char* name : {"Adam", "Lion", "Muon", "Ranger21"}) {
    job = golden_job(model);
    job.optimizer.name = name;
    add_steps(lines, word_of(model.name) + "_with_" + name, job, on_one_device(model));
  }
  job = golden_job(model);
  job.optimizer.decay_1d = true;
  add_steps(lines, word_of(model.name) + "_where_all_decays", job, on_one_device(model));
  add_gpt2(lines);
  return lines;
}

TEST(GoldenBits, OfSteps) {
  const auto complaint = testing::check_golden(LOCKSTEP_SOURCE_DIR, step_lines(), "steps");
  EXPECT_TRUE(complaint.empty()) << complaint;
}

}  // namespace
}  // namespace lockstep::trainer
