#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/families/gpt2.h"
#include "models/families/llama.h"
#include "models/families/moe_options.h"
#include "trainer/job/job.h"

/// What a job says of a model, beside what the flavor says.
namespace lockstep::trainer {

/// The flavor's, but for what the job gives; length and cuts are not in them. REQUIRES: of a job of this model.
models::LlamaOptions llama_options(const ModelSection& model);
models::MoeOptions moe_options(const ModelSection& model);
models::Gpt2Options gpt2_options(const ModelSection& model);

/// The same model, and of llama3, gpt2 and moe everything said that its flavor says.
ModelSection with_all_sizes(const ModelSection& model);

/// The tensors that a model with all its sizes, llama3, gpt2 or moe, is stored as, and their sizes. BadInput where the
/// sizes do not fit each other.
std::map<std::string, std::vector<int64_t>> stored_sizes(const ModelSection& model);

/// "model.rope_theta is 1e+06, not 500000": where two models with all their sizes differ in what they compute, but for
/// dropout.
std::vector<std::string> model_differences(const ModelSection& model, const ModelSection& expected);

}  // namespace lockstep::trainer
