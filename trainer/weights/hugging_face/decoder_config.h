#pragma once
#include <nlohmann/json.hpp>

#include "trainer/job/job.h"
#include "trainer/weights/hugging_face/config_reader.h"

/// What all of transformers' decoders of Llama's kind say alike.
namespace lockstep::trainer {

/// Sizes, norms, the head, rotations: plain ones, or those of Llama 3.1.
void read_decoder(const ConfigReader& config, ModelSection& model);

/// The same of a model with all its sizes, for sequences of up to `length` tokens.
nlohmann::json decoder_config(const ModelSection& model, int64_t length);

}  // namespace lockstep::trainer
