// Folders as Hugging Face's transformers writes them: names, orders of rows, configurations, and what is refused.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/plain/tensor_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/weights/foreign_folder.h"
#include "trainer/weights/exchange/open_weights.h"
#include "trainer/weights/hugging_face/config.h"
#include "trainer/weights/hugging_face/names.h"
#include "trainer/weights/hugging_face/rotary_rows.h"
#include "trainer/weights/model_sizes.h"

namespace lockstep::trainer {
namespace {

using nlohmann::json;
using testing::ForeignFolder;
using ::testing::HasSubstr;
using testing::message_of;

TEST(RotaryRows, PairsLieTogetherInsteadOfApart) {
  // Two heads of 6 rows: row half * 3 + i of theirs is row 2 i + half of ours.
  const auto apart = at::arange(12, at::kFloat).reshape({12, 1});
  const auto read = [&](int64_t first, int64_t count) { return apart.narrow(0, first, count); };
  const auto expected = at::tensor({0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}, at::kFloat).reshape({12, 1});
  EXPECT_TRUE(pairs_together(read, 6, 0, 12).equal(expected));
  for (int64_t first = 0; first <= 12; ++first)
    for (int64_t count = 0; first + count <= 12; ++count)
      EXPECT_TRUE(pairs_together(read, 6, first, count).equal(expected.narrow(0, first, count)))
          << first << " " << count;
  EXPECT_TRUE(pairs_apart(expected, 6).equal(apart));
}

TEST(HuggingFace, RowsOfALlamaAreFoundByOurNames) {
  for (const char* type : {"F32", "BF16", "F16"}) {
    const ForeignFolder folder("llama", {}, type);
    const auto source = open_weights(folder.path());
    EXPECT_EQ(source->model().name, "llama3");
    EXPECT_TRUE(whole_tensor(*source, "layers.1.feed_forward.w2.weight")
                    .equal(folder.value("model.layers.1.mlp.down_proj.weight")));
    const auto theirs = folder.value("model.layers.0.self_attn.k_proj.weight");  // 2 heads of 4 rows
    const auto ours = theirs.index_select(0, at::tensor({0, 2, 1, 3, 4, 6, 5, 7}));
    EXPECT_TRUE(whole_tensor(*source, "layers.0.attention.wk.weight").equal(ours));
    EXPECT_TRUE(source->rows("layers.0.attention.wk.weight", 3, 2).equal(ours.narrow(0, 3, 2)));
  }
}

TEST(HuggingFace, RowsOfAGpt2AreColumnsOfFusedWeights) {
  const ForeignFolder folder("gpt2", {});
  const auto source = open_weights(folder.path());
  const auto fused = folder.value("transformer.h.0.attn.c_attn.weight");
  EXPECT_TRUE(whole_tensor(*source, "layers.0.attention.wk.weight").equal(fused.narrow(1, 16, 16).t()));
  EXPECT_TRUE(source->rows("layers.0.attention.wv.weight", 5, 3).equal(fused.narrow(1, 32 + 5, 3).t()));
  EXPECT_TRUE(whole_tensor(*source, "layers.0.attention.wv.bias")
                  .equal(folder.value("transformer.h.0.attn.c_attn.bias").narrow(0, 32, 16)));
}

TEST(HuggingFace, FilesOfManyPartsAndTheOldestNamesAreRead) {
  const ForeignFolder parts("llama", {}, "F32", 3);
  EXPECT_TRUE(whole_tensor(*open_weights(parts.path()), "norm.weight").equal(parts.value("model.norm.weight")));
  ForeignFolder old("gpt2", {});
  old.rename([](std::string name) { return name.substr(std::string("transformer.").size()); });
  EXPECT_TRUE(whole_tensor(*open_weights(old.path()), "norm.bias").equal(old.value("ln_f.bias")));
}

TEST(HuggingFace, BiasesAreQwens) {
  const ForeignFolder folder("qwen2", {{"tie_word_embeddings", true}});
  const auto source = open_weights(folder.path());
  EXPECT_TRUE(*source->model().attention_bias);
  EXPECT_FALSE(source->sizes().contains("output.weight"));
  EXPECT_TRUE(whole_tensor(*source, "layers.0.attention.wk.bias")
                  .equal(folder.value("model.layers.0.self_attn.k_proj.bias")
                             .index_select(0, at::tensor({0, 2, 1, 3, 4, 6, 5, 7}))));
}

struct Refused {
  json change;
  const char* says;
};

TEST(HuggingFaceConfig, WhatTheModelDoesNotComputeIsRefused) {
  const Refused cases[] = {
      {{{"model_type", "bert"}},
       "model_type is \"bert\"; llama, mistral, qwen2, gpt2, mixtral, qwen3_moe and "
       "deepseek_v3 can be read"},
      {{{"hidden_act", "gelu"}}, "hidden_act is \"gelu\"; the model here has \"silu\""},
      {{{"attention_bias", true}}, "attention_bias is true; the model here has false"},
      {{{"mlp_bias", true}}, "mlp_bias is true"},
      {{{"head_dim", 8}}, "head_dim is 8; the model here has 4"},
      {{{"sliding_window", 4096}}, "has sliding_window, which the model here has not"},
      {{{"quantization_config", {{"bits", 4}}}}, "has quantization_config"},
      {{{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}},
       "rope_type is \"linear\"; the model here has \"llama3\""},
      {{{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 2.0}}}},
       "low_freq_factor is 2.0"},
      {{{"hidden_size", "16"}}, "hidden_size must be an integer of at least 1"},
      {{{"num_hidden_layers", -1}}, "num_hidden_layers must be an integer of at least 1"},
      {{{"rms_norm_eps", true}}, "rms_norm_eps must be a number"},
      {{{"tie_word_embeddings", 1}}, "tie_word_embeddings must be true or false"},
      {{{"num_key_value_heads", 3}}, "model.heads"},
      {{{"vocab_size", 33}}, "model.embed_tokens.weight has sizes [32, 16]; the model of its config.json has [33, 16]"},
      {{{"num_hidden_layers", 3}}, "has no model.layers.2.input_layernorm.weight"},
      {{{"num_hidden_layers", 1}}, "holds model.layers.1."},
      {{{"tie_word_embeddings", true}}, "lm_head.weight is not model.embed_tokens.weight"},
  };
  for (const auto& [change, says] : cases) {
    ForeignFolder folder("llama", {});
    folder.change_config(change);
    EXPECT_THAT(message_of<Error>([&] { open_weights(folder.path()); }), HasSubstr(says));
  }
}

TEST(HuggingFaceConfig, BothFormsOfRotationsAreRead) {
  const json scaling{{"rope_type", "llama3"}, {"factor", 32.0}};
  ForeignFolder old("llama", {{"rope_theta", 1000.0}, {"rope_scaling", scaling}});
  auto now = scaling;
  now["rope_theta"] = 1000.0;
  ForeignFolder later("llama", {{"rope_parameters", now}});
  for (const auto* folder : {&old, &later}) {
    const auto source = open_weights(folder->path());
    EXPECT_EQ(*source->model().rope_theta, 1000);
    EXPECT_EQ(*source->model().rope_factor, 32);
  }
  EXPECT_EQ(*open_weights(ForeignFolder("llama", {}).path())->model().rope_factor, 1);
}

/// What of a mixture of experts no model of transformers computes.
TEST(HuggingFaceConfig, ExpertsThatTransformersHasNotAreNotWritten) {
  const auto refusal = [](const char* flavor, const auto& change) {
    auto model = with_all_sizes({.name = "moe", .flavor = flavor});
    change(model);
    return message_of<BadInput>([&] { hugging_face_config(model, 128, "float32"); });
  };
  const auto nothing = [](ModelSection&) {};
  EXPECT_EQ(refusal("debugmodel-llama4", nothing),
            "model.unrotated_every is 4; transformers' mixtral has 0: this model cannot be exported.");
  EXPECT_EQ(refusal("debugmodel", [](ModelSection& model) { model.experts.capacity_factor = 1.5; }),
            "model.experts.capacity_factor is 1.5; transformers' mixtral has 0.0: this model cannot be exported.");
  EXPECT_EQ(refusal("debugmodel-deepseek-v3", [](ModelSection& model) { model.experts.balance_rate = 0; }),
            "model.experts.balance_rate is 0; transformers' deepseek_v3 has biases: this model cannot be exported.");
  EXPECT_EQ(refusal("debugmodel-qwen3", [](ModelSection& model) { model.experts.shared = 1; }),
            "model.experts.shared is 1; transformers' qwen3_moe has 0: this model cannot be exported.");
}

TEST(HuggingFaceConfig, IsReadBackAsItWasWritten) {
  const TemporaryFolder folder;
  for (const auto& model :
       {ModelSection{.name = "llama3", .flavor = "3B"}, ModelSection{.name = "gpt2", .flavor = "124M"},
        ModelSection{.name = "llama3", .rope_factor = 1, .attention_bias = true},
        ModelSection{.name = "moe", .flavor = "mixtral-8x7B"}, ModelSection{.name = "moe", .flavor = "debugmodel"},
        ModelSection{.name = "moe", .flavor = "qwen3-30B-A3B"},
        ModelSection{.name = "moe", .flavor = "deepseek-v3-671B"}}) {
    const auto all = with_all_sizes(model);
    std::ofstream(folder.file("config.json")) << hugging_face_config(all, 128, "float32");
    EXPECT_THAT(model_differences(read_hugging_face_config(folder.file("config.json")), all), ::testing::IsEmpty());
  }
}

TEST(HuggingFace, DamagedFoldersAreNamed) {
  ForeignFolder folder("llama", {}, "F32", 2);
  folder.remove("model-00002-of-00002.safetensors");
  EXPECT_THAT(message_of<Error>([&] { open_weights(folder.path()); }), HasSubstr("model-00002-of-00002.safetensors"));
  ForeignFolder other("llama", {}, "F32", 2);
  other.write("model.safetensors.index.json", R"({"weight_map": {"model.norm.weight": "../elsewhere"}})");
  EXPECT_THAT(message_of<Error>([&] { open_weights(other.path()); }), HasSubstr("must be in a file of this folder"));
  const TemporaryFolder empty;
  EXPECT_THAT(message_of<Error>([&] { open_weights(empty.file(".")); }), HasSubstr("holds no weights"));
  EXPECT_THAT(message_of<Error>([&] { open_weights(empty.file("none")); }), HasSubstr("is no folder of weights"));
  EXPECT_THAT(
      message_of<Error>([] { open_weights(ForeignFolder("llama", {}, "I32").path())->rows("norm.weight", 0, 1); }),
      HasSubstr("quantized ones cannot"));
}

}  // namespace
}  // namespace lockstep::trainer
