#pragma once
#include <memory>
#include <string>

#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

/// Whether a folder holds what torch.distributed.checkpoint saves, torchtitan's checkpoints among it: .metadata.
bool is_torch_checkpoint_folder(const std::string& folder);

/// Opens the weights of such a folder, named as torchtitan names them (with or without "model." in front) and as wide
/// as float32, float16 or bfloat16; of a model that the folder does not say. What optimizers and data loaders saved
/// beside them is left out. BadInput for a tensor that the model lacks, has not, or has in other sizes or another type.
std::unique_ptr<WeightSource> open_torch_checkpoint(const std::string& folder, const ModelSection& model);

}  // namespace lockstep::trainer
