#pragma once
#include <string>

#include "trainer/job/job.h"

/// config.json of Hugging Face's transformers: which model the weights beside it belong to.
namespace lockstep::trainer {

/// The model in a job's words, with all its sizes: llama3 of "llama", "mistral" and "qwen2", gpt2 of "gpt2", moe of
/// "mixtral", "qwen3_moe" and "deepseek_v3". FileError
/// for what is no such file, BadInput for what the model here does not compute: another kind, other activations,
/// rotations or biases, windows of attention, quantized weights.
ModelSection read_hugging_face_config(const std::string& path);

/// What transformers reads for this model, given with all its sizes, and sequences of up to `length` tokens. BadInput
/// for a mixture of experts that no model of transformers computes. `dtype`: "float32" or "bfloat16", of the weights.
std::string hugging_face_config(const ModelSection& model, int64_t length, const std::string& dtype);

}  // namespace lockstep::trainer
