#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "trainer/job/job.h"
#include "trainer/weights/hugging_face/config_reader.h"

/// Mixtures of experts in transformers' words: Mixtral, Qwen 3 and DeepSeek-V3.
namespace lockstep::trainer {

/// Which of transformers' kinds a model with all its sizes is: "deepseek_v3" if its attention is latent, "qwen3_moe" if
/// queries and keys are normed, or "mixtral". BadInput, naming the key, where that kind computes something else.
std::string expert_kind(const ModelSection& model);

bool is_expert_kind(const std::string& kind);

/// As read_hugging_face_config() and hugging_face_config(). A model whose experts have biases balances them.
ModelSection read_expert_model(const ConfigReader& config, const std::string& kind);
nlohmann::json expert_config(const ModelSection& model, int64_t length);

}  // namespace lockstep::trainer
