#include "models/families/moe.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/families/router.h"

namespace lockstep::models {
namespace {

using ::testing::HasSubstr;

/// Mixtral: 46.7B (its card), Qwen 3: 30.5B and 235B (its report), DeepSeek-V3: 671B (its report, without the module
/// that predicts two tokens), Llama 4: 109B and 400B (their cards; here without the encoder of images). What the biases
/// that balance experts have is counted, too.
TEST(Moe, HasThePublishedParameterCounts) {
  const std::pair<const char*, int64_t> expected[] = {
      {"mixtral-8x7B", 46'702'792'704},      {"qwen3-30B-A3B", 30'532'122'624},   {"qwen3-235B-A22B", 235'093'634'560},
      {"deepseek-v3-671B", 671'026'419'200}, {"llama4-17Bx16E", 107'769'861'120}, {"llama4-17Bx128E", 400'711'848'960}};
  for (const auto& [name, count] : expected) EXPECT_EQ(Moe(moe_flavor(name)).parameter_count(), count) << name;
}

/// Those that a token is multiplied with: 12.9B, 3.3B, 22B, 37B, 17B and 17B are published, tables of tokens included.
TEST(Moe, CountsOperationsOfTheExpertsThatATokenChooses) {
  const std::pair<const char*, double> expected[] = {{"mixtral-8x7B", 12.9},    {"qwen3-30B-A3B", 3.3},
                                                     {"qwen3-235B-A22B", 22.2}, {"deepseek-v3-671B", 37.6},
                                                     {"llama4-17Bx16E", 17.2},  {"llama4-17Bx128E", 17.2}};
  for (const auto& [name, billions] : expected) {
    const auto options = moe_flavor(name);
    const auto table = static_cast<double>(options.dense.vocabulary * options.dense.width);
    EXPECT_NEAR((Moe(options).operations_per_token(0) / 6 + table) / 1e9, billions, 0.1) << name;
  }
}

TEST(Moe, HasTorchtitansNames) {
  std::vector<std::string> names;
  const Moe model(moe_flavor("debugmodel-deepseek-v3"));
  for (const auto* parameter : model.parameters())
    for (const auto& part : parameter->division().parts())
      if (part.name.starts_with("layers.1.")) names.push_back(part.name.substr(9));
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         "attention_norm.weight", "ffn_norm.weight", "attention.wq_a.weight", "attention.q_norm.weight",
                         "attention.wq_b.weight", "attention.wkv_a.weight", "attention.kv_norm.weight",
                         "attention.wkv_b.weight", "attention.wo.weight", "moe.router.gate.weight", "moe.experts.w1",
                         "moe.experts.w2", "moe.experts.w3", "moe.shared_experts.w1.weight",
                         "moe.shared_experts.w2.weight", "moe.shared_experts.w3.weight", "moe.expert_bias"));
}

TEST(Moe, RefusesSizesThatDoNotFit) {
  const auto refusal = [](const auto& change) -> std::string {
    auto options = moe_flavor("debugmodel-deepseek-v3");
    change(options);
    try {
      require_fitting_sizes(options);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](MoeOptions&) {}), "");
  EXPECT_EQ(refusal([](MoeOptions& o) { o.experts.groups_per_token = 5; }),
            "model.experts.groups_per_token 5 is more than the 4 groups of model.experts.groups.");
  EXPECT_EQ(
      refusal([](MoeOptions& o) { o.experts.per_token = 9; }),
      "model.experts.per_token 9 is more than the 8 experts that a token can choose among (model.experts.count 16 "
      "in 4 groups, 2 of them for a token).");
  EXPECT_THAT(refusal([](MoeOptions& o) { o.experts.groups = 3; }),
              HasSubstr("model.experts.count 16 is no multiple of model.experts.groups 3"));
  EXPECT_THAT(refusal([](MoeOptions& o) { o.latent.rotated_size = 15; }), HasSubstr("must be even"));
  EXPECT_THAT(refusal([](MoeOptions& o) { o.dense.key_value_heads = 8; }),
              HasSubstr("has as many heads of keys as of queries"));
}

// The router's parts, on plain tensors.

at::Tensor numbers(int64_t count) { return at::arange(count, c10::kLong); }

at::Tensor chosen(const std::vector<std::vector<int64_t>>& tokens) {
  std::vector<at::Tensor> rows;
  for (const auto& token : tokens) rows.push_back(at::tensor(token, c10::kLong));
  return at::stack(rows).unsqueeze(0);
}

/// Of six tokens that all want expert 0 first, the fourth one's second choice comes after all first ones.
TEST(Capacity, GoesToFirstChoicesInTheirOrder) {
  const auto experts = chosen({{0, 1}, {0, 1}, {1, 0}, {0, 1}, {1, 2}});
  const auto within = within_capacity(experts, numbers(3), 3);
  EXPECT_TRUE(at::equal(within, chosen({{0, 1}, {0, -1}, {1, -1}, {0, -1}, {1, 2}}))) << within;
  EXPECT_TRUE(at::equal(within_capacity(experts, numbers(3), 5), experts));
  EXPECT_TRUE(at::equal(within_capacity(experts, numbers(3), 0), at::full_like(experts, -1)));
}

/// Each sequence by itself.
TEST(Capacity, IsOfOneSequence) {
  const auto experts = at::cat({chosen({{0}, {0}}), chosen({{0}, {0}})});
  EXPECT_TRUE(at::equal(within_capacity(experts, numbers(2), 1), at::cat({chosen({{0}, {-1}}), chosen({{0}, {-1}})})));
}

TEST(Choices, AreCountedByExpert) {
  const auto experts = at::cat({chosen({{0, 3}, {3, 1}}), chosen({{3, 0}, {0, 1}})});
  EXPECT_TRUE(at::equal(choice_counts(experts, numbers(5)), at::tensor({3, 2, 0, 3, 0}, c10::kLong)));
}

/// All tokens on one expert of four that has all of the score: count times as uneven as even.
TEST(Imbalance, IsOneWhereExpertsHaveEqualShares) {
  const auto even = chosen({{0}, {1}, {2}, {3}}), uneven = chosen({{2}, {2}, {2}, {2}});
  const auto equal_scores = at::full({1, 4, 4}, 0.5);
  EXPECT_EQ(imbalance(equal_scores, even, numbers(4)).item<float>(), 1);
  EXPECT_EQ(imbalance(equal_scores, uneven, numbers(4)).item<float>(), 1);
  auto one_score = at::zeros({1, 4, 4});
  one_score.select(2, 2).fill_(0.25);
  EXPECT_EQ(imbalance(one_score, uneven, numbers(4)).item<float>(), 4);
}

}  // namespace
}  // namespace lockstep::models
