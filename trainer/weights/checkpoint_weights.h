#pragma once
#include <memory>
#include <string>

#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

/// Whether a folder is a checkpoint of Lockstep's.
bool is_checkpoint_folder(const std::string& folder);

enum class CheckpointPart { kWeights, kAll };

/// The weights of a checkpoint, without optimizer state or with it. Errors as Checkpoint's.
std::unique_ptr<WeightSource> open_checkpoint(const std::string& folder,
                                              CheckpointPart part = CheckpointPart::kWeights);

}  // namespace lockstep::trainer
