#pragma once
#include <cstdint>
#include <vector>

#include "trainer/generate/sampling.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

struct Generated {
  std::vector<int64_t> tokens;            ///< those of the prompt first
  std::vector<double> log_probabilities;  ///< of each token but the first, by the tokens before it
};

struct GenerateOptions {
  int64_t count = 0;    ///< tokens behind the prompt
  int64_t samples = 1;  ///< texts, which are drawn apart; of one each with temperature 0
  Sampling sampling = {};
  bool cached = true;  ///< false: all tokens are read again for each new one
  int64_t chunk = 0;   ///< tokens of the prompt that are read at once; 0: all
};

/// Goes on with a prompt. Canonical: text and log-probabilities have the same bits on every mesh, cached or not,
/// however many samples and in whatever chunks; a log-probability is the loss of training with the other sign. BadInput
/// for an empty prompt, tokens that the model does not know, and more tokens than it was built for.
std::vector<Generated> generate(TrainingRun& run, const std::vector<int64_t>& prompt, const GenerateOptions& options);

}  // namespace lockstep::trainer
