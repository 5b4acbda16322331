#include "trainer/identity/run_identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "trainer/job/job_file.h"
#include "trainer/job/job_keys.h"

namespace lockstep::trainer {
namespace {

std::set<std::string> names_of(const Facts& facts) {
  std::set<std::string> names;
  for (const auto& [name, value] : facts) names.insert(name);
  return names;
}

/// Whoever adds a key decides here whether it has a part in the bits.
TEST(RunIdentity, HasEveryKeyThatDecidesBits) {
  EXPECT_EQ(names_of(identity_facts({}, "d1")),
            (std::set<std::string>{"checkpoint.initial_load_path",
                                   "debug.seed",
                                   "job.plugins",
                                   "lr_scheduler.decay_ratio",
                                   "lr_scheduler.decay_type",
                                   "lr_scheduler.min_lr_factor",
                                   "lr_scheduler.total_steps",
                                   "lr_scheduler.warmup_steps",
                                   "lora.alpha",
                                   "lora.dora",
                                   "lora.dropout",
                                   "lora.rank",
                                   "lora.targets",
                                   "model.attention_bias",
                                   "model.attention_dropout",
                                   "model.converters",
                                   "model.dropout",
                                   "model.experts.count",
                                   "model.experts.per_token",
                                   "model.experts.hidden",
                                   "model.experts.shared",
                                   "model.experts.dense_layers",
                                   "model.experts.every",
                                   "model.experts.sigmoid_scores",
                                   "model.experts.normalized",
                                   "model.experts.scale",
                                   "model.experts.score_before_experts",
                                   "model.experts.groups",
                                   "model.experts.groups_per_token",
                                   "model.experts.capacity_factor",
                                   "model.experts.balance_rate",
                                   "model.experts.auxiliary_loss",
                                   "model.latent_attention.query_rank",
                                   "model.latent_attention.key_value_rank",
                                   "model.latent_attention.plain_size",
                                   "model.latent_attention.rotated_size",
                                   "model.latent_attention.value_size",
                                   "model.head_width",
                                   "model.query_key_norm",
                                   "model.unrotated_every",
                                   "model.flavor",
                                   "model.heads",
                                   "model.hidden",
                                   "model.key_value_heads",
                                   "model.layers",
                                   "model.name",
                                   "model.vocabulary",
                                   "model.width",
                                   "numerics.mode",
                                   "numerics.rounded_levels",
                                   "model.norm_eps",
                                   "model.rope_factor",
                                   "model.rope_theta",
                                   "model.tied_head",
                                   "optimizer.beta1",
                                   "optimizer.beta2",
                                   "optimizer.decay_1d",
                                   "optimizer.ema_decay",
                                   "optimizer.eps",
                                   "optimizer.groups",
                                   "optimizer.lr",
                                   "optimizer.momentum",
                                   "optimizer.name",
                                   "optimizer.nesterov",
                                   "optimizer.weight_decay",
                                   "quantize.rotated_block",
                                   "quantize.linear.float8.recipe_name",
                                   "quantize.linear.float8.enable_fsdp_float8_all_gather",
                                   "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
                                   "quantize.linear.float8.filter_fqns",
                                   "quantize.linear.mx.recipe_name",
                                   "quantize.linear.mx.filter_fqns",
                                   "ranger21.explore_exploit",
                                   "ranger21.gradient_centralisation",
                                   "ranger21.gradient_clipping",
                                   "ranger21.gradient_normalisation",
                                   "ranger21.linear_warmup",
                                   "ranger21.lookahead",
                                   "ranger21.norm_loss",
                                   "ranger21.positive_negative_momentum",
                                   "ranger21.softplus",
                                   "ranger21.stable_weight_decay",
                                   "training.dataset",
                                   "training.dataset_path",
                                   "training.dpo_beta",
                                   "training.global_batch_size",
                                   "training.loss",
                                   "training.max_norm",
                                   "training.mixed_precision_float32",
                                   "training.mixed_precision_param",
                                   "training.mixed_precision_reduce",
                                   "training.pack_documents",
                                   "training.seq_len"}));
}

TEST(RunIdentity, IsTheScheduleLengthWhoeverSaysIt) {
  const auto identity = [](const char* job) { return identity_text(identity_facts(parse_job(job, "j"), "")); };
  const auto four = identity("[training]\nsteps = 4");
  EXPECT_EQ(four.size(), 32u);
  EXPECT_NE(four, identity("[training]\nsteps = 5"));
  EXPECT_EQ(four, identity("[training]\nsteps = 5\n[lr_scheduler]\ntotal_steps = 4"));
}

TEST(RunIdentity, OfASuccessorIsNotThatOfARunWithItsJob) {
  const auto facts = identity_facts({}, "d1");
  const std::vector<RunOrigin::Parent> one{{"a", 4}}, later{{"a", 5}}, other{{"b", 4}};
  const std::set<std::string> all{identity_text(facts), identity_text(facts, one), identity_text(facts, later),
                                  identity_text(facts, other)};
  EXPECT_EQ(all.size(), 4u);
}

TEST(RunIdentity, NamesWhatChanged) {
  auto job = parse_job("[optimizer]\nlr = 0.25", "j");
  const auto before = identity_facts(job, "d1");
  job.optimizer.lr = 0.5;
  job.metrics.log_freq = 7;
  const auto changed = changed_facts(before, identity_facts(job, "d2"));
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].name + " " + changed[0].before + " " + changed[0].now, "optimizer.lr 0.25 0.5");
  EXPECT_EQ(changed[1].name + " " + changed[1].before + " " + changed[1].now, "training.dataset_path data d1 data d2");
  EXPECT_TRUE(changed_facts(identity_facts(job, ""), identity_facts(job, "d2")).empty()) << "older checkpoints";
}

}  // namespace
}  // namespace lockstep::trainer
