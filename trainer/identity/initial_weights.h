#pragma once
#include <string>

#include "trainer/job/job.h"

/// Weights that a run begins with instead of drawn ones (checkpoint.initial_load_path), as a part of what it is.
namespace lockstep::trainer {

/// A digest of a folder of weights that costs little however large it is: of its safetensors files, index.json and
/// config.json, of PyTorch's its .distcp files and .metadata, by name, each as data_digest() reads it. 32 hexadecimal
/// digits. BadInput where there is no such file.
std::string weights_digest(const std::string& folder);

/// The job with checkpoint.initial_load_digest filled in; of a run that resumes it is that of the run that saved, and
/// the folder need not be there any more. BadInput for weights of another digest than the job says, and for a digest
/// without weights.
Job with_initial_weights(Job job);

}  // namespace lockstep::trainer
