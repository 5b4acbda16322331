#include "trainer/weights/hugging_face/rotations.h"

namespace lockstep::trainer {
namespace {

/// Of Llama 3.1; a job cannot change them.
constexpr double kLowFrequency = 1, kHighFrequency = 4, kOriginalLength = 8192;

}  // namespace

void read_rotations(const ConfigReader& config, ModelSection& model) {
  const auto* key = config.find("rope_parameters") ? "rope_parameters" : "rope_scaling";
  model.rope_theta = config.number("rope_theta", 10000), model.rope_factor = 1;
  if (!config.find(key)) return;
  const auto rope = config.inner(key);
  model.rope_theta = rope.number("rope_theta", *model.rope_theta);
  const auto type = rope.text("rope_type", rope.text("type", "default").c_str());
  if (type == "default") return;
  rope.require<std::string>("rope_type", type, "llama3");
  model.rope_factor = rope.number("factor", 1);
  rope.require("low_freq_factor", rope.number("low_freq_factor", kLowFrequency), kLowFrequency);
  rope.require("high_freq_factor", rope.number("high_freq_factor", kHighFrequency), kHighFrequency);
  rope.require("original_max_position_embeddings", rope.number("original_max_position_embeddings", kOriginalLength),
               kOriginalLength);
}

void add_rotations(const ModelSection& model, nlohmann::json& config) {
  config["rope_theta"] = *model.rope_theta;
  if (*model.rope_factor > 1)
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", *model.rope_factor},
                              {"low_freq_factor", kLowFrequency},
                              {"high_freq_factor", kHighFrequency},
                              {"original_max_position_embeddings", static_cast<int64_t>(kOriginalLength)}};
}

}  // namespace lockstep::trainer
