#pragma once
#include <cstdint>
#include <memory>
#include <string>
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

/// Makes the weights of a model's linear maps eight-bit integers (LinearRecipe::kInt8Weights); as Options::make_model.
std::unique_ptr<models::Model> make_int8_model(const Job& job);

/// How much of the weights of a run of such a model is lost: for each parameter that is quantised the length of the
/// difference over its own.
struct WeightError {
  std::string parameter;
  double relative = 0;
};
std::vector<WeightError> int8_errors(TrainingRun& run);

/// Goes on with a prompt. Canonical: text and log-probabilities have the same bits on every mesh, cached or not,
/// however many samples and in whatever chunks; a log-probability is the loss of training with the other sign. BadInput
/// for an empty prompt, tokens that the model does not know, and more tokens than it was built for.
std::vector<Generated> generate(TrainingRun& run, const std::vector<int64_t>& prompt, const GenerateOptions& options);

}  // namespace lockstep::trainer
