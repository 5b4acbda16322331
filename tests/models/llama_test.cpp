#include "models/families/llama.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/families/mlp.h"

namespace lockstep::models {
namespace {

TEST(Llama, HasThePublishedParameterCounts) {
  const std::pair<const char*, int64_t> expected[] = {{"debugmodel", 6163712}, {"1B", 1235814400},
                                                      {"3B", 3212749824},      {"8B", 8030261248},
                                                      {"70B", 70553706496},    {"405B", 405853388800}};
  for (const auto& [name, count] : expected) EXPECT_EQ(Llama(llama_flavor(name)).parameter_count(), count) << name;
}

/// torchtitan 0.2.2 says so for 2048 tokens: TransformerModelArgs.get_nparams_and_flops() of its llama3 models.
TEST(Llama, CountsOperationsAsTorchtitan) {
  const std::pair<const char*, double> expected[] = {
      {"debugmodel", 71'585'280}, {"8B", 48'250'773'504}, {"70B", 433'124'327'424}};
  for (const auto& [name, operations] : expected)
    EXPECT_EQ(Llama(llama_flavor(name)).operations_per_token(2048), operations) << name;
}

/// The head multiplies with it.
TEST(Llama, CountsATableThatTheHeadUses) {
  auto options = llama_flavor("debugmodel");
  options.tied_head = true;
  EXPECT_EQ(Llama(options).operations_per_token(2048), 71'585'280);
}

TEST(Llama, RefusesAnUnknownFlavor) {
  try {
    llama_flavor("9B");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "model.flavor 9B is not known for llama3; choose one of debugmodel, 1B, 3B, 8B, 70B, 405B");
  }
}

TEST(Rope, RotatesPairsByPositionTimesFrequency) {
  const RopeOptions options{4, 10000, 1};
  const auto tables = rope_tables(options, 3);
  const auto x = at::arange(1, 13, at::kFloat).view({1, 1, 3, 4});
  const auto rotated = rotate(x, tables.cosines, tables.sines);
  for (int64_t position = 0; position < 3; ++position)
    for (int64_t pair = 0; pair < 2; ++pair) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(pair) / 2);
      const double a = x[0][0][position][2 * pair].item<double>(), b = x[0][0][position][2 * pair + 1].item<double>();
      EXPECT_NEAR(rotated[0][0][position][2 * pair].item<double>(), a * std::cos(angle) - b * std::sin(angle), 1e-5);
      EXPECT_NEAR(rotated[0][0][position][2 * pair + 1].item<double>(), a * std::sin(angle) + b * std::cos(angle),
                  1e-5);
    }
}

/// Llama 3.1's published scaling, as closed forms at both ends: high frequencies stay, low ones are divided by 8.
TEST(Rope, ScalesLowFrequenciesOnly) {
  const auto scaled = rope_tables({128, 500000, 8}, 2), plain = rope_tables({128, 500000, 1}, 2);
  EXPECT_EQ(scaled.sines[1][0].item<float>(), plain.sines[1][0].item<float>());
  const double lowest = std::pow(500000.0, -126.0 / 128);
  EXPECT_NEAR(scaled.sines[1][63].item<double>(), std::sin(lowest / 8), 1e-12);
}

TEST(Parameters, ComeInTheOrderOfRegistrationWithFullNames) {
  Mlp model(mlp_flavor("debugmodel"));
  std::vector<std::string> names;
  for (const auto* parameter : model.parameters()) names.push_back(parameter->name());
  EXPECT_EQ(names, (std::vector<std::string>{"tok_embeddings.weight", "layers.0.up.weight", "layers.0.up.bias",
                                             "layers.0.down.weight", "layers.0.down.bias", "layers.1.up.weight",
                                             "layers.1.up.bias", "layers.1.down.weight", "layers.1.down.bias",
                                             "output.weight", "output.bias"}));
}

}  // namespace
}  // namespace lockstep::models
