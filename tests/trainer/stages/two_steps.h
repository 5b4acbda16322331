#pragma once
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

}  // namespace lockstep::testing
