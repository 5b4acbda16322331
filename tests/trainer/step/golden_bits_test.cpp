// The bits of whole canonical steps on one device are those in tests/golden/: loss and gradient norm of each of two
// steps, and parameters and optimizer state after them. That meshes have the same bits is what bitwise_test.cpp shows.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/digest/digest.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/tensor_bytes.h"
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

void add_steps(GoldenLines& lines, const std::string& name, const Job& job, const CanonicalModel& model) {
  TrainingRun run(job, testing::canonical_options("one device", model));
  for (int64_t step = 1; step <= 2; ++step) {
    const auto batch = testing::batch_for(job, step, testing::kCanonicalVocabulary);
    const auto result = run.step(step, batch, 1e-2);
    testing::add_line(lines, fmt::format("{}.step_{}.loss", name, step), fmt::format("{:a}", result.loss));
    testing::add_line(lines, fmt::format("{}.step_{}.norm", name, step), fmt::format("{:a}", result.gradient_norm));
  }
  testing::add_line(lines, name + ".state", digest_of(run.state()));
}

/// They were written when parameters of one dimension never decayed.
Job golden_job(const CanonicalModel& model) {
  auto job = testing::canonical_job(model, kBatch, kBatch);
  job.optimizer.decay_1d = false;
  return job;
}

GoldenLines step_lines() {
  GoldenLines lines;
  for (const auto& model : testing::kCanonicalModels) add_steps(lines, word_of(model.name), golden_job(model), model);
  const auto& model = testing::kCanonicalModels[0];
  auto job = golden_job(model);
  job.optimizer.name = "SGD";
  job.optimizer.momentum = 0.9;
  add_steps(lines, word_of(model.name) + "_with_SGD", job, model);
  return lines;
}

TEST(GoldenBits, OfSteps) {
  const auto complaint = testing::check_golden(LOCKSTEP_SOURCE_DIR, step_lines(), "steps");
  EXPECT_TRUE(complaint.empty()) << complaint;
}

}  // namespace
}  // namespace lockstep::trainer
