#pragma once
#include <functional>
#include <string>

#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::testing {

/// Loss and norm of a run's first two steps, a loss without training, and a digest of the state after them.
inline std::string two_steps(const trainer::Job& job, trainer::TrainingRun& run) {
  std::string text;
  for (int64_t step = 1; step <= 2; ++step) {
    const auto result = run.step(step, batch_for(job, step), 1e-2);
    text += fmt::format("{:a} {:a} ", result.loss, result.gradient_norm);
  }
  const auto evaluation = run.evaluate(3, batch_for(job, 3));
  return fmt::format("{}{:a} {} {}", text, evaluation.loss_sum, evaluation.tokens,
                     trainer::state_digest(run.state()).text());
}

/// The same of a model on a mesh, "pp=2,tp=2".
inline std::string two_steps(const trainer::Job& job, const std::string& mesh,
                             const std::function<std::unique_ptr<models::Model>()>& make_model) {
  trainer::TrainingRun::Options options;
  options.mesh = trainer::parse_mesh(mesh);
  options.make_model = make_model;
  trainer::TrainingRun run(job, std::move(options));
  return two_steps(job, run);
}

}  // namespace lockstep::testing
