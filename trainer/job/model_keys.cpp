
#include "trainer/job/allowed_values.h"

namespace lockstep::trainer {
namespace {

// One row per key: section, name, member, accepted values, help.
// clang-format off
constexpr Key kKeys[] = {
    {"job", "dump_folder", at<&Job::job, &JobSection::dump_folder>(), kNotEmpty,
     "Folder for everything a run writes: checkpoints, metrics, the resolved job, reports."},
    {"job", "description", at<&Job::job, &JobSection::description>(), kAnything, "Free text, printed and saved."},
    {"job", "plugins", at<&Job::job, &JobSection::plugins>(), kAnything,
     "Name and digest of each plug-in of --plugin (docs/plugins.md): a saved job has them, and goes on with these alone. "
     "(Not in torchtitan.)"},

    {"model", "name", at<&Job::model, &ModelSection::name>(), one_of(kModelNames), "Model family"},
    {"model", "flavor", at<&Job::model, &ModelSection::flavor>(), kNotEmpty,
     "Size within the family, for gpt2: debugmodel, 124M, 355M, 774M, 1.5B; for llama3: debugmodel, 1B, 3B, 8B, 70B, "
     "405B; for mlp: debugmodel; for moe: debugmodel, debugmodel-qwen3, debugmodel-deepseek-v3, debugmodel-llama4, mixtral-8x7B, qwen3-30B-A3B, "
     "qwen3-235B-A22B, deepseek-v3-671B, llama4-17Bx16E, llama4-17Bx128E."},
    {"model", "width", at<&Job::model, &ModelSection::width>(), kModelSize,
     "Size of the embedding, instead of the flavor's; a multiple of heads. (Not in torchtitan.)"},
    {"model", "layers", at<&Job::model, &ModelSection::layers>(), kLayers,
     "Blocks, instead of the flavor's. (Not in torchtitan.)"},
    {"model", "heads", at<&Job::model, &ModelSection::heads>(), kModelSize,
     "Query heads of a block, instead of the flavor's; of llama3 and moe a multiple of key_value_heads. Not of mlp. (Not in "
     "torchtitan.)"},
    {"model", "key_value_heads", at<&Job::model, &ModelSection::key_value_heads>(), kModelSize,
     "Heads of keys and values, instead of the flavor's. Of llama3 and moe. (Not in torchtitan.)"},
    {"model", "hidden", at<&Job::model, &ModelSection::hidden>(), kModelSize,
     "Size inside the feed-forward, instead of the flavor's; of llama3 and moe a multiple of key_value_heads. (Not in "
     "torchtitan.)"},
    {"model", "vocabulary", at<&Job::model, &ModelSection::vocabulary>(), kVocabulary,
     "Tokens that the model knows, instead of the flavor's. (Not in torchtitan.)"},
    {"model", "dropout", at<&Job::model, &ModelSection::dropout>(), kBelowOne,
     "Share of activations that training drops, instead of the flavor's. (Not in torchtitan.)"},
    {"model", "attention_dropout", at<&Job::model, &ModelSection::attention_dropout>(), kBelowOne,
     "Share of attention's weights that training drops; the flavors drop none. On GPUs, in native numerics, it holds the "
     "matrix of all weights. Not of mlp. (Not in torchtitan.)"},
    {"model", "rope_theta", at<&Job::model, &ModelSection::rope_theta>(), kAboveZero,
     "Base of the rotations' frequencies, instead of the flavor's. Of llama3 and moe. (Not in torchtitan.)"},
    {"model", "rope_factor", at<&Job::model, &ModelSection::rope_factor>(), kFactor,
     "By which slow rotations are slowed down as in Llama 3.1, instead of the flavor's; 1 = not at all. Of llama3 and moe. (Not "
     "in torchtitan.)"},
    {"model", "norm_eps", at<&Job::model, &ModelSection::norm_eps>(), kAboveZero,
     "Added to the mean square in norms, instead of the flavor's. Of llama3 and moe. (Not in torchtitan.)"},
    {"model", "tied_head", at<&Job::model, &ModelSection::tied_head>(), kAnything,
     "Whether the head uses the embedding's weight, instead of the flavor's. Of llama3 and moe. (Not in torchtitan.)"},
    {"model", "attention_bias", at<&Job::model, &ModelSection::attention_bias>(), kAnything,
     "Whether queries, keys and values have biases, as Qwen 2's; no flavor has. Of llama3 and moe. (Not in torchtitan.)"},
    {"model", "head_width", at<&Job::model, &ModelSection::head_width>(), kModelSizeOr0,
     "Elements of a head, instead of the flavor's; 0 = width over heads. Of moe alone. (Not in torchtitan.)"},
    {"model", "query_key_norm", at<&Job::model, &ModelSection::query_key_norm>(), kAnything,
     "Whether queries and keys are normed over each head, as Qwen 3's, instead of the flavor's. Of moe alone. (Not in "
     "torchtitan.)"},
    {"model", "unrotated_every", at<&Job::model, &ModelSection::unrotated_every>(), kLayersOr0,
     "Of every so many layers the last one does not rotate queries and keys, as Llama 4's, instead of the flavor's; 0 = "
     "all do. Of moe alone. (Not in torchtitan.)"},

    {"model", "converters", at<&Job::model, &ModelSection::converters>(), one_of(kConverters),
     "What linear maps become: their products are those of factors of few bits, exactly (docs/low_precision.md)"},

    {"model.experts", "count", at<&Job::model, &ModelSection::experts, &ExpertsSection::count>(), kModelSize,
     "Experts of a layer, instead of the flavor's; of moe alone, as all of this section. (Not in torchtitan.)"},
    {"model.experts", "per_token", at<&Job::model, &ModelSection::experts, &ExpertsSection::per_token>(), kModelSize,
     "Experts that each token goes to, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "hidden", at<&Job::model, &ModelSection::experts, &ExpertsSection::hidden>(), kModelSize,
     "Size inside each expert's feed-forward, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "shared", at<&Job::model, &ModelSection::experts, &ExpertsSection::shared>(), kSmallCount,
     "Experts that every token has besides: one feed-forward of so many times hidden. (Not in torchtitan.)"},
    {"model.experts", "dense_layers", at<&Job::model, &ModelSection::experts, &ExpertsSection::dense_layers>(), kLayersOr0,
     "The first layers, which have no experts, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "every", at<&Job::model, &ModelSection::experts, &ExpertsSection::every>(), kLayers,
     "Of every so many layers the last one has experts, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "sigmoid_scores", at<&Job::model, &ModelSection::experts, &ExpertsSection::sigmoid_scores>(), kAnything,
     "Whether an expert's score is the sigmoid of its logit, not the softmax over all, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "normalized", at<&Job::model, &ModelSection::experts, &ExpertsSection::normalized>(), kAnything,
     "Whether the scores of a token's experts are divided by their sum, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "scale", at<&Job::model, &ModelSection::experts, &ExpertsSection::scale>(), kAboveZero,
     "Times which they are then, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "score_before_experts", at<&Job::model, &ModelSection::experts, &ExpertsSection::score_before_experts>(), kAnything,
     "Whether they multiply what experts take, not what they give, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "groups", at<&Job::model, &ModelSection::experts, &ExpertsSection::groups>(), kModelSize,
     "Runs of experts, of which a token chooses groups_per_token first, instead of the flavor's. (Not in torchtitan.)"},
    {"model.experts", "groups_per_token", at<&Job::model, &ModelSection::experts, &ExpertsSection::groups_per_token>(), kModelSize,
     "Groups that a token's experts are in, those whose two best scores have the largest sums. (Not in torchtitan.)"},
    {"model.experts", "capacity_factor", at<&Job::model, &ModelSection::experts, &ExpertsSection::capacity_factor>(), kAtLeast0,
     "An expert takes at most this times its even share of a sequence's tokens, first come first served; 0 = all that chose it, as in every flavor. (Not in torchtitan.)"},
    {"model.experts", "balance_rate", at<&Job::model, &ModelSection::experts, &ExpertsSection::balance_rate>(), kAtLeast0,
     "By how much a step changes the biases that balance the load (docs/experts.md), instead of the flavor's; 0 = there are none. (Not in torchtitan.)"},
    {"model.experts", "auxiliary_loss", at<&Job::model, &ModelSection::experts, &ExpertsSection::auxiliary_loss>(), kAtLeast0,
     "Weight of the loss that balances each sequence, instead of the flavor's; the loss that is told is without it. (Not in torchtitan.)"},

    {"model.latent_attention", "query_rank", at<&Job::model, &ModelSection::latent_attention, &LatentAttentionSection::query_rank>(), kModelSizeOr0,
     "Elements of the vectors that queries come from, instead of the flavor's; 0 = the embedding. Of moe alone, as all of this section. (Not in torchtitan.)"},
    {"model.latent_attention", "key_value_rank", at<&Job::model, &ModelSection::latent_attention, &LatentAttentionSection::key_value_rank>(), kModelSizeOr0,
     "Elements of the vectors that keys and values come from, instead of the flavor's; 0 = attention is not latent. (Not in torchtitan.)"},
    {"model.latent_attention", "plain_size", at<&Job::model, &ModelSection::latent_attention, &LatentAttentionSection::plain_size>(), kModelSize,
     "Elements of each head's queries and keys that are not rotated, instead of the flavor's. (Not in torchtitan.)"},
    {"model.latent_attention", "rotated_size", at<&Job::model, &ModelSection::latent_attention, &LatentAttentionSection::rotated_size>(), kModelSize,
     "Elements of each head's queries and keys that are rotated, instead of the flavor's. (Not in torchtitan.)"},
    {"model.latent_attention", "value_size", at<&Job::model, &ModelSection::latent_attention, &LatentAttentionSection::value_size>(), kModelSize,
     "Elements of each head's values, instead of the flavor's. (Not in torchtitan.)"},
};
// clang-format on

}  // namespace

std::span<const Key> model_keys() { return kKeys; }

}  // namespace lockstep::trainer
