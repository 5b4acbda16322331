#pragma once
#include <memory>
#include <string>

#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

/// Whether a folder holds what Hugging Face's transformers saves: config.json and safetensors.
bool is_hugging_face_folder(const std::string& folder);

/// Opens such a folder. BadInput for a model that is not computed here (read_hugging_face_config()), for a tensor that
/// the model lacks, has not, or has in other sizes, and for a tied head that is not the embedding.
std::unique_ptr<WeightSource> open_hugging_face(const std::string& folder);

}  // namespace lockstep::trainer
