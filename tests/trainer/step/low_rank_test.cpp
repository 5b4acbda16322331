// [lora]: what is trained, that it is what the papers say, and that meshes do not show in it.
#include "models/low_rank.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/layers.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/canonical_models.h"
#include "tests/support/message_of.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr int64_t kBatch = 12;

Job lora_job(bool dora, int64_t local_batch = 1) {
  auto job = testing::canonical_job(testing::kCanonicalModels[2], kBatch, local_batch);
  job.lora = {.rank = 3, .alpha = 6, .dropout = 0.1, .targets = {"*"}, .dora = dora};
  return job;
}

TokenBatch batch_of(const Job& job, int64_t step) {
  return testing::batch_for(job, step, testing::kCanonicalVocabulary);
}

TrainingRun::Options options_on(const char* mesh) {
  return testing::canonical_options(mesh, testing::kCanonicalModels[2]);
}

at::Tensor value_of(const TrainingState& state, const std::string& name) {
  for (const auto& entry : state)
    if (entry.name == name) return gather(entry.value);
  ADD_FAILURE() << "no " << name;
  return {};
}

class LowRankBits : public ::testing::TestWithParam<std::tuple<bool, const char*>> {};

TEST_P(LowRankBits, AreOneDevices) {
  const auto [dora, mesh] = GetParam();
  const auto job = lora_job(dora);
  StepVerifier verifier(job, options_on(mesh));
  for (int64_t step = 1; step <= 2; ++step) {
    const auto check = verifier.check(step, batch_of(job, step), 1e-2);
    ASSERT_TRUE(check.comparison.agrees() && check.comparison.differing_bits == 0)
        << "step " << step << ": " << check.comparison.beyond[0].text();
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, LowRankBits,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values("dp_replicate=2", "dp_shard=2", "dp_shard=3", "tp=2",
                                                              "tp=3", "cp=2", "dp_shard=2,tp=2",
                                                              "dp_replicate=2,dp_shard=2,tp=2", "dp_shard=2,cp=2,tp=2",
                                                              "pp=3,tp=2")));

TEST(LowRank, MicrobatchesDoNotShow) {
  for (const bool dora : {false, true}) {
    std::vector<std::string> digests;
    for (const int64_t local : {1, 2, 4, 12}) {
      const auto job = lora_job(dora, local);
      TrainingRun run(job, options_on("one device"));
      for (int64_t step = 1; step <= 2; ++step) run.step(step, batch_of(job, step), 1e-2);
      digests.push_back(state_digest(run.state()).text());
    }
    EXPECT_THAT(digests, ::testing::Each(digests[0])) << dora;
  }
}

TEST(LowRank, StartsAsTheModelAndTrainsTheChangeAlone) {
  for (const bool dora : {false, true}) {
    auto job = lora_job(dora);
    TrainingRun run(job, options_on("dp_shard=2,tp=2"));
    job.lora = {};
    TrainingRun plain(job, options_on("dp_shard=2,tp=2"));
    const auto expected = plain.evaluate(0, batch_of(job, 1)).loss_sum;
    EXPECT_NEAR(run.evaluate(0, batch_of(job, 1)).loss_sum, expected, dora ? expected * 1e-6 : 0);
    std::vector<at::Tensor> before;
    for (const auto& entry : run.state()) before.push_back(gather(entry.value).clone());
    // A is first led by a B that is not 0 anymore.
    for (int64_t step = 1; step <= 2; ++step) run.step(step, batch_of(job, step), 1e-2);
    int trained = 0;
    for (size_t p = 0; p < before.size(); ++p) {
      const auto& entry = run.state()[p];
      EXPECT_EQ(entry.trainable, entry.is_adapter) << entry.name;
      EXPECT_EQ(gather(entry.value).equal(before[p]), !entry.trainable) << entry.name;
      EXPECT_EQ(entry.slots.empty(), !entry.trainable) << entry.name;
      trained += entry.trainable;
    }
    // Of two layers: qkv, wo, gate_up, w2; and the head.
    EXPECT_EQ(trained, (dora ? 3 : 2) * 9);
  }
}

/// x W'^T and its derivatives by the papers' formulas, in float64.
TEST(LowRank, IsWhatThePapersSay) {
  for (const bool dora : {false, true}) {
    struct Root : models::Module {
      models::Linear linear{*this, "w", {5, 7, "heads embed", models::Initial::fill(0), {}, /*bias=*/true}};
    } root;
    root.linear.adapt({.rank = 2, .alpha = 3, .magnitude = dora});
    std::vector<at::Tensor> wide;
    for (auto* parameter : root.parameters()) {
      auto value = at::empty(parameter->sizes());
      for (int64_t i = 0; i < value.numel(); ++i)
        value.view(-1)[i] = 0.1 * static_cast<double>((i * 7 + static_cast<int64_t>(wide.size()) * 5) % 11) - 0.43;
      parameter->assign(value.clone().requires_grad_());
      wide.push_back(value.to(at::kDouble).requires_grad_());
    }
    const auto x = at::arange(-6, 9, at::kFloat).mul(0.17).view({3, 5});
    const auto& w = wide[0];
    const auto &bias = wide[1], &a = wide[2], &b = wide[3];
    auto changed = w + at::mm(b, a) * 1.5;
    if (dora) changed = changed / changed.detach().norm(2, {1}, true) * wide[4].unsqueeze(1);
    const auto expected = at::linear(x.to(at::kDouble), changed, bias);
    const auto actual = root.linear.forward(x);
    EXPECT_TRUE(at::allclose(actual.to(at::kDouble), expected, 1e-5, 1e-6)) << dora;
    const auto weights = at::arange(21, at::kFloat).view({3, 7}).sub(8.5);
    (actual * weights).sum().backward();
    (expected * weights.to(at::kDouble)).sum().backward();
    const auto parameters = root.parameters();
    for (size_t p = 0; p < wide.size(); ++p)
      EXPECT_TRUE(at::allclose(parameters[p]->tensor().grad().to(at::kDouble), wide[p].grad(), 1e-4, 1e-4))
          << dora << " " << parameters[p]->name();
  }
}

TEST(LowRank, MagnitudesStartAsTheLengthsOfRows) {
  const auto job = lora_job(true);
  const TrainingRun run(job, options_on("dp_shard=2,tp=2"));
  for (const auto* name : {"layers.0.attention.qkv", "layers.1.feed_forward.w2", "head.output"}) {
    const auto lengths = value_of(run.state(), std::string(name) + ".weight").to(at::kDouble).norm(2, {1});
    const auto magnitude = value_of(run.state(), std::string(name) + ".magnitude");
    EXPECT_TRUE(at::allclose(magnitude.to(at::kDouble), lengths, 1e-6)) << name;
  }
}

TEST(LowRank, NamesOfFusedPartsAreTheirOwn) {
  const auto job = lora_job(true);
  const TrainingRun run(job, options_on("one device"));
  std::set<std::string> names;
  for (const auto& entry : run.state())
    for (const auto& part : entry.division.parts()) names.insert(part.name);
  for (const auto* name : {"layers.0.attention.wq+wk+wv.lora_a", "layers.0.attention.wk.lora_b",
                           "layers.1.feed_forward.w1+w3.lora_a", "layers.1.feed_forward.w3.magnitude", "output.lora_a"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(LowRank, TargetsAreLinearWeights) {
  const auto problem = [](std::vector<std::string> targets) {
    auto job = lora_job(false);
    job.lora.targets = std::move(targets);
    return message_of<BadInput>([&] { TrainingRun(job, options_on("one device")); });
  };
  EXPECT_THAT(problem({"*.wo.weight", "*.wp.weight"}),
              HasSubstr("lora.targets: \"*.wp.weight\" fits no linear weight."));
  EXPECT_THAT(problem({"tok_embeddings.weight"}), HasSubstr("fits no linear weight"));
  EXPECT_THAT(problem({"*.wq.weight"}),
              HasSubstr("fits layers.0.attention.wq.weight, which is computed as one parameter with"));
  EXPECT_EQ(problem({"*.wo.weight", "output.weight"}), "no such error");
}

TEST(LowRank, SettingsThatNothingHeedsAreRefused) {
  const auto problem = [](const std::string& text) {
    return message_of<BadInput>([&] { resolve(parse_job(text, "job.toml"), {}); });
  };
  const std::string data = "[training]\ndataset_path = \"x\"\n";
  EXPECT_EQ(problem(data + "[lora]\ndora = true\n"),
            "lora.dora true is of changes of low rank; lora.rank is 0. Leave it out or give a rank.");
  EXPECT_EQ(problem(data + "[lora]\nrank = 4\ntargets = []\n"), "lora.rank is 4, but lora.targets names no weights.");
  auto job = lora_job(false);
  job.optimizer.groups = {{.pattern = "*norm*", .lr_factor = 0.5}};
  EXPECT_THAT(message_of<BadInput>([&] { TrainingRun(job, options_on("one device")); }),
              HasSubstr("all that \"*norm*\" fits is frozen: [lora] trains changes alone"));
}

}  // namespace
}  // namespace lockstep::trainer
