#include "trainer/optim/parameter_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tests/support/small_models.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;

OptimizerSection section(const std::string& groups, const std::string& name = "AdamW") {
  return parse_job("[optimizer]\nname = \"" + name + "\"\ngroups = [" + groups + "]\n", "job.toml").optimizer;
}

/// By parameter: "lr_factor weight_decay frozen muon".
std::map<std::string, std::string> settings_of(const OptimizerSection& optimizer) {
  const auto model = testing::small_llama();
  const auto settings = apply_groups(optimizer, *model);
  std::map<std::string, std::string> texts;
  for (size_t p = 0; p < settings.size(); ++p) {
    const auto& [factor, decay, muon] = settings[p];
    const auto& parts = model->parameters()[p]->division().parts();
    texts[parts.size() == 1 ? parts[0].name : model->parameters()[p]->name()] =
        fmt::format("{} {} {}{}", factor, decay ? fmt::format("{}", *decay) : "-",
                    model->parameters()[p]->trainable() ? "" : "frozen", muon ? "muon" : "");
  }
  return texts;
}

std::string problem(const std::string& groups, const std::string& name = "AdamW") {
  try {
    settings_of(section(groups, name));
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TEST(ParameterSettings, AreThoseOfTheFirstGroupThatFits) {
  const auto all = settings_of(section(R"({pattern = "layers.0.*norm.weight", lr_factor = 0.5, weight_decay = 0},
    {pattern = "*norm.weight", weight_decay = 0.25}, {pattern = "tok_embeddings.*", frozen = true})"));
  EXPECT_EQ(all.at("layers.0.ffn_norm.weight"), "0.5 0 ");
  EXPECT_EQ(all.at("layers.1.ffn_norm.weight"), "1 0.25 ");
  EXPECT_EQ(all.at("norm.weight"), "1 0.25 ");
  EXPECT_EQ(all.at("tok_embeddings.weight"), "1 - frozen");
  EXPECT_EQ(all.at("layers.0.attention.qkv.weight"), "1 - ");
}

TEST(ParameterSettings, OfAGroupWithNothingElseKeepTheParameterFromLaterOnes) {
  const auto all = settings_of(section(R"({pattern = "output.*"}, {pattern = "*", lr_factor = 2})"));
  EXPECT_EQ(all.at("output.weight"), "1 - ");
  EXPECT_EQ(all.at("norm.weight"), "2 - ");
}

TEST(ParameterSettings, GoByStoredNamesWhereAllTensorsOfAParameterFit) {
  const auto all = settings_of(section(R"({pattern = "*.attention.w?.weight", lr_factor = 2})"));
  EXPECT_EQ(all.at("layers.0.attention.qkv.weight"), "2 - ");
  EXPECT_EQ(all.at("layers.0.attention.wo.weight"), "2 - ");
  EXPECT_EQ(all.at("layers.0.feed_forward.w2.weight"), "1 - ");
}

TEST(ParameterSettings, OfMuonAreTheMatricesOfLayersUnlessAGroupSaysOtherwise) {
  const auto all = settings_of(section(R"({pattern = "*.wo.weight", muon = false}, {pattern = "output.*", muon = true},
    {pattern = "*.w2.weight", lr_factor = 3})",
                                       "Muon"));
  EXPECT_EQ(all.at("layers.0.attention.qkv.weight"), "1 - muon");
  EXPECT_EQ(all.at("layers.1.attention.wo.weight"), "1 - ");
  EXPECT_EQ(all.at("layers.1.feed_forward.w2.weight"), "3 - muon");
  EXPECT_EQ(all.at("layers.1.ffn_norm.weight"), "1 - ");
  EXPECT_EQ(all.at("tok_embeddings.weight"), "1 - ");
  EXPECT_EQ(all.at("output.weight"), "1 - muon");
  EXPECT_EQ(settings_of(section("", "AdamW")).at("layers.0.attention.qkv.weight"), "1 - ");
}

TEST(ParameterSettings, RefuseGroupsThatDoNothingOrOnlyAPartOfSomething) {
  const std::string place = "optimizer.groups: ";
  EXPECT_EQ(problem(R"({pattern = "head.*"})"), "") << "the module's own name fits, too";
  EXPECT_THAT(problem(R"({pattern = "layers.0.fn_norm.weight"})"),
              HasSubstr(place + "\"layers.0.fn_norm.weight\" fits no parameter. Did you mean layers.0.ffn_norm.weight? "
                                "The model's 15 are tok_embeddings.weight, norm.weight, output.weight, "));
  EXPECT_EQ(problem(R"({pattern = "*norm*"}, {pattern = "norm.weight", frozen = true})"),
            place + "all that \"norm.weight\" fits belongs to groups before it; the first that fits counts.");
  EXPECT_EQ(problem(R"({pattern = "layers.0.attention.wq.*", frozen = true})"),
            place +
                "\"layers.0.attention.wq.*\" fits layers.0.attention.wq.weight, which is computed as one parameter "
                "with layers.0.attention.wk.weight, layers.0.attention.wv.weight, layers.0.attention.qkv.weight. "
                "Choose a pattern that fits all of them.");
  EXPECT_EQ(problem(R"({pattern = "*", frozen = true})"),
            place + "every parameter is frozen; nothing is left to train.");
  EXPECT_EQ(problem(R"({pattern = "norm.weight", muon = true})", "Muon"),
            place + "\"norm.weight\" has muon = true and fits norm.weight, which is no matrix: it has 1 dimension.");
}

}  // namespace
}  // namespace lockstep::trainer
