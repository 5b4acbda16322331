#pragma once
#include <nlohmann/json.hpp>

#include "trainer/job/job.h"
#include "trainer/weights/hugging_face/config_reader.h"

/// Rotations of a config.json: plain ones, and those of Llama 3.1.
namespace lockstep::trainer {

/// Of transformers 5, "rope_parameters"; before, "rope_theta" and "rope_scaling".
void read_rotations(const ConfigReader& config, ModelSection& model);

/// Of a model with all its sizes, as versions before 5 read it, too.
void add_rotations(const ModelSection& model, nlohmann::json& config);

}  // namespace lockstep::trainer
