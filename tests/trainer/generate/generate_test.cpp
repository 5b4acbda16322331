// Texts and log-probabilities are the same, and those of training's forward, however they came about: cached or not, in
// chunks, many samples at once, on any mesh.
#include "trainer/generate/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/families/gpt2.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr int64_t kLength = 12;

std::unique_ptr<models::Model> small_gpt2() { return std::make_unique<models::Gpt2>(testing::small_gpt2_options()); }

using MakeModel = std::unique_ptr<models::Model> (*)();

TrainingRun run_on(const std::string& mesh, MakeModel make_model, const char* dtype = "float32", bool keep = false) {
  auto job = testing::small_job();
  const auto degrees = parse_mesh(mesh);
  job.training.global_batch_size = job.training.local_batch_size = 4;
  job.training.mixed_precision_param = dtype;
  TrainingRun::Options options{.mesh = degrees, .keep_gradients = keep};
  options.make_model = make_model;
  return {job, options};
}

/// What training says of a text: the loss of each token by those before it.
std::vector<double> losses_in_training(MakeModel make_model, const char* dtype, const std::vector<int64_t>& text) {
  auto run = run_on("tp=1", make_model, dtype, true);
  TokenBatch batch{4, kLength, {}, {}};
  for (int64_t row = 0; row < 4; ++row)
    for (size_t i = 0; i < kLength; ++i) {
      const bool is_text = row == 2 && i + 1 < text.size();
      batch.tokens.push_back(row == 2 && i < text.size() ? text[i] : static_cast<int64_t>(i * 5 + row) % 29);
      batch.labels.push_back(is_text ? text[i + 1] : static_cast<int64_t>(i * 3 + row) % 29);
    }
  const auto losses = gather(run.step(1, batch, 0).token_losses.at(0)).reshape({4, kLength}).select(0, 2).contiguous();
  std::vector<double> all;
  for (size_t i = 0; i + 1 < text.size(); ++i) all.push_back(losses[static_cast<int64_t>(i)].item<double>());
  return all;
}

std::unique_ptr<models::Model> llama_without_dropout() {
  return std::make_unique<models::Llama>(testing::small_llama_options());
}

std::unique_ptr<models::Model> gpt2_without_dropout() {
  auto options = testing::small_gpt2_options();
  options.dropout = 0;
  return std::make_unique<models::Gpt2>(options);
}

RC_GTEST_PROP(Generate, GivesTheBitsOfTrainingHoweverItIsDone, ()) {
  const auto make_model = *rc::gen::element<MakeModel>(llama_without_dropout, gpt2_without_dropout);
  const auto* dtype = *rc::gen::element("float32", "bfloat16");
  const auto mesh = *rc::gen::element<std::string>("tp=1", "tp=2", "tp=3", "dp_shard=2", "dp_shard=2,tp=2",
                                                   "dp_replicate=4", "pp=2", "pp=3,tp=2");
  const auto prompt =
      *rc::gen::container<std::vector<int64_t>>(*rc::gen::inRange<size_t>(1, 9), rc::gen::inRange<int64_t>(0, 29));
  GenerateOptions options;
  options.count = *rc::gen::inRange<int64_t>(0, kLength - static_cast<int64_t>(prompt.size()) + 1);
  options.samples = *rc::gen::element<int64_t>(1, 2, 5);
  options.cached = *rc::gen::arbitrary<bool>();
  options.chunk = *rc::gen::inRange<int64_t>(0, 5);
  options.sampling = {*rc::gen::element(0.0, 0.5, 1.5), *rc::gen::element(1.0, 0.7), *rc::gen::arbitrary<uint64_t>()};
  auto run = run_on(mesh, make_model, dtype);
  const auto texts = generate(run, prompt, options);
  RC_ASSERT(texts.size() == static_cast<size_t>(options.samples));
  // Plainly: one rank, one sample after the other is what the last one has to be, too.
  GenerateOptions plain{
      .count = options.count, .samples = options.samples, .sampling = options.sampling, .cached = false};
  auto alone = run_on("tp=1", make_model, dtype);
  const auto expected = generate(alone, prompt, plain);
  for (size_t i = 0; i < texts.size(); ++i) {
    RC_ASSERT(texts[i].tokens == expected[i].tokens);
    RC_ASSERT(texts[i].log_probabilities == expected[i].log_probabilities);
  }
  const auto losses = losses_in_training(make_model, dtype, texts.back().tokens);
  RC_ASSERT(losses.size() == texts.back().log_probabilities.size());
  for (size_t i = 0; i < losses.size(); ++i) RC_ASSERT(-losses[i] == texts.back().log_probabilities[i]);
}

TEST(Generate, DropsNothing) {
  auto dropping = run_on("tp=1", small_gpt2), keeping = run_on("tp=1", gpt2_without_dropout);
  const GenerateOptions options{.count = 6};
  EXPECT_EQ(generate(dropping, {3}, options)[0].log_probabilities,
            generate(keeping, {3}, options)[0].log_probabilities);
}

TEST(Generate, RefusesWhatTheModelDoesNotKnow) {
  auto run = run_on("tp=1", gpt2_without_dropout);
  const auto says = [&](const std::vector<int64_t>& prompt, int64_t count) {
    return message_of<BadInput>([&] { generate(run, prompt, {.count = count}); });
  };
  EXPECT_THAT(says({}, 1), HasSubstr("the prompt is empty"));
  EXPECT_THAT(says({1, 29}, 1), HasSubstr("token 1 of the prompt is 29; the model knows 0 to 28"));
  EXPECT_THAT(says({-1}, 1), HasSubstr("is -1"));
  EXPECT_THAT(says({1, 2, 3}, 11), HasSubstr("a sequence of 13 tokens is longer than the model's 12 positions"));
  EXPECT_EQ(says({1, 2, 3}, 9), "no such error");
}

TEST(NextToken, IsTheLikeliestOrDrawnAmongThose) {
  const std::vector<float> logits{0, 2, 2, -1};
  EXPECT_EQ(next_token(logits, {}, 0, 0), 1);  // of equal ones the first
  std::vector<int64_t> counts(4), of_top(4);
  for (int64_t position = 0; position < 4000; ++position) {
    ++counts[static_cast<size_t>(next_token(logits, {.temperature = 1, .seed = 3}, 0, position))];
    ++of_top[static_cast<size_t>(next_token(logits, {.temperature = 1, .top_p = 0.5, .seed = 3}, 0, position))];
  }
  // exp of them by their sum, within four deviations.
  const double shares[] = {0.0619, 0.4576, 0.4576, 0.0228};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double>(counts[i]) / 4000, shares[i], 4 * std::sqrt(shares[i] * (1 - shares[i]) / 4000))
        << i;
  EXPECT_EQ(of_top[0] + of_top[3], 0);
  EXPECT_GT(of_top[2], 1700);  // the first one alone has 0.458
}

TEST(NextToken, IsAFunctionOfSeedSampleAndPosition) {
  std::vector<float> logits(1000);
  const auto draw = [&](uint64_t seed, int64_t sample, int64_t position) {
    return next_token(logits, {.temperature = 1, .seed = seed}, sample, position);
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(2, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 3, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 2, 4));
}

}  // namespace
}  // namespace lockstep::trainer
