#pragma once
#include "trainer/job/job.h"
#include "trainer/names/choices.h"

/// The names that jobs choose by: the one list of each kind. What a name stands for is built elsewhere, by a Registry
/// that refuses to lack one of these names or to know another; so the command line can check a job, and print what it
/// may say, without what the builders need.
namespace lockstep::trainer {

inline constexpr Choice kModelNames[] = {
    {"gpt2", "GPT-2 with its published sizes"},
    {"llama3", "Llama 3 with torchtitan's sizes and names"},
    {"mlp", "feed-forward blocks that see one token at a time"},
    {"moe", "mixtures of experts as Mixtral's, Qwen 3's, DeepSeek-V3's and Llama 4's"},
};
inline constexpr Choice kOptimizerNames[] = {
    {"AdamW", "Adam with decoupled weight decay"},
    {"Adam", "with weight decay added to the gradient"},
    {"SGD", "stochastic gradient descent, with momentum if optimizer.momentum is set"},
    {"Lion", "the sign of a momentum"},
    {"Muon", "momentum made orthogonal for the matrices of the layers, AdamW for all else"},
    {"Ranger21", "AdamW with the components of [ranger21]"},
};
inline constexpr Choice kDecayNames[] = {
    {"linear"}, {"sqrt"}, {"cosine"}, {"inverse_root", "1 over the root of the step"}};
inline constexpr Choice kDatasetNames[] = {
    {"text", "the bytes of a UTF-8 file, one token a byte"},
    {"tokens", "files of token ids (docs/data.md)"},
    {"conversations", "files of conversations, of which answers are learned (docs/fine_tuning.md)"},
    {"preferences", "files of pairs of conversations for training.loss dpo"},
};
inline constexpr Choice kLossNames[] = {
    {"cross_entropy", "of each token"},
    {"dpo", "direct preference optimization, of each pair of conversations (docs/fine_tuning.md)"},
};
inline constexpr Choice kConverters[] = {
    {kFloat8Converter, "float8 factors, by the section of that name"},
    {kMxConverter, "blocks of 32 float8 or float4 numbers, by the section of that name"},
};
inline constexpr Choice kFloat8Recipes[] = {
    {"tensorwise", "a weight, and each sample of an activation"},
    {"rowwise", "a row or column along what is summed over"},
    {"rowwise_with_gw_hp", "as rowwise, but gradients of weights are not quantised"},
};
inline constexpr Choice kMxRecipes[] = {
    {"mxfp8_cublas", "E4M3"}, {"mxfp8_emulated", "E4M3"}, {"mxfp4_emulated", "E2M1"}, {"mxfp4_cutlass", "E2M1"}};
inline constexpr Choice kNumericsNames[] = {{kCanonicalMode}, {kNativeMode}};

}  // namespace lockstep::trainer
