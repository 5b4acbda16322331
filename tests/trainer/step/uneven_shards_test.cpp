// Microbatches on meshes whose dp_shard is no power of two: neighbours in a microbatch are no siblings in the tree over
// the step's samples, so that its gradient is several nodes of that. One device's bits, whatever the mesh, the number
// of microbatches and their order. LOCKSTEP_BITWISE_SEED repeats a drawn run.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>

#include "core/error.h"
#include "models/layers.h"
#include "tests/support/canonical_models.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using ModelMaker = std::function<std::unique_ptr<models::Model>()>;

/// Dropout, grouped heads, a tied head: the table is read by two modules.
std::unique_ptr<models::Model> tied_llama() {
  auto options = testing::small_llama_options();
  options.dropout = 0.1;
  options.tied_head = true;
  return std::make_unique<models::Llama>(options);
}

Job job_of(int64_t batch, int64_t local_batch) {
  auto job = testing::small_job();
  job.training.global_batch_size = batch;
  job.training.local_batch_size = local_batch;
  return job;
}

TrainingRun::Options options_on(const std::string& mesh, const ModelMaker& make_model = tied_llama) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = make_model;
  return options;
}

/// Loss, norm, and a digest of the state after two steps, whose microbatches come in `order` (empty: ascending) with
/// one forward ahead of the backward before it.
std::string two_steps(const Job& job, TrainingRun::Options options, std::vector<int64_t> order = {}) {
  TrainingRun run(job, std::move(options));
  if (order.empty()) {
    order.resize(static_cast<size_t>(run.batching().accumulation_steps));
    std::iota(order.begin(), order.end(), 0);
  }
  std::string text;
  for (int64_t step = 1; step <= 2; ++step) {
    const auto batch = testing::batch_for(job, step);
    run.begin_step(step, batch, 1e-2);
    auto losses = run.forward_loss(order[0]);
    for (size_t i = 0; i < order.size(); ++i) {
      const auto next = i + 1 < order.size() ? run.forward_loss(order[i + 1]) : at::Tensor();
      run.accumulate(order[i], std::exchange(losses, next));
    }
    const auto result = run.apply();
    text += fmt::format("{:a} {:a} ", result.loss, result.gradient_norm);
  }
  return text + state_digest(run.state()).text();
}

std::string one_device(int64_t batch, const ModelMaker& make_model = tied_llama) {
  return two_steps(job_of(batch, batch), options_on("one device", make_model));
}

struct Case {
  const char* mesh;
  int64_t local_batch = 1;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Case& value, std::ostream* out) { *out << value.mesh << ", local batch " << value.local_batch; }

class UnevenShards : public ::testing::TestWithParam<Case> {};

TEST_P(UnevenShards, HaveOneDevicesBits) {
  const auto ranks = parse_mesh(GetParam().mesh).data_parallel();
  for (const int64_t microbatches : {2, 3, 4}) {
    const auto batch = ranks * GetParam().local_batch * microbatches;
    const auto job = job_of(batch, GetParam().local_batch);
    ASSERT_EQ(derive_batching(job, parse_mesh(GetParam().mesh)).accumulation_steps, microbatches);
    const auto expected = one_device(batch);
    EXPECT_EQ(two_steps(job, options_on(GetParam().mesh)), expected) << microbatches << " microbatches";
    std::vector<int64_t> order(static_cast<size_t>(microbatches));
    std::iota(order.rbegin(), order.rend(), 0);
    EXPECT_EQ(two_steps(job, options_on(GetParam().mesh), order), expected) << microbatches << ", the last one first";
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, UnevenShards,
                         ::testing::Values(Case{"dp_shard=3"}, Case{"dp_shard=3", 2}, Case{"dp_shard=5"},
                                           Case{"dp_shard=6"}, Case{"dp_shard=7"}, Case{"dp_shard=3,tp=2"},
                                           Case{"dp_shard=5,tp=2"}, Case{"dp_shard=3,cp=2"},
                                           Case{"dp_replicate=2,dp_shard=3"}, Case{"dp_replicate=2,dp_shard=5"},
                                           Case{"dp_replicate=3,dp_shard=3"}, Case{"dp_replicate=2,dp_shard=3,tp=2"}));

TEST(UnevenShards, HaveOneDevicesBitsIn16Bits) {
  auto job = job_of(12, 12);
  job.training.mixed_precision_param = "bfloat16";
  const auto expected = two_steps(job, options_on("one device"));
  job.training.local_batch_size = 1;
  EXPECT_EQ(two_steps(job, options_on("dp_shard=3")), expected);
  EXPECT_EQ(two_steps(job, options_on("dp_replicate=2,dp_shard=3")), expected);
}

/// And recomputed blocks, whose parameters are gathered within a backward.
TEST(UnevenShards, HaveOneDevicesBitsWithSumsOfSeveralLeaves) {
  for (const auto& [name, mesh] : {std::pair{"tied", "dp_shard=3,tp=2"}, {"dropout, grouped heads", "dp_shard=3"}}) {
    const auto& model =
        *std::find_if(std::begin(testing::kCanonicalModels), std::end(testing::kCanonicalModels),
                      [wanted = std::string_view(name)](const auto& each) { return each.name == wanted; });
    auto job = testing::canonical_job(model, 6, 1);
    job.activation_checkpoint.mode = "full";
    StepVerifier verifier(job, testing::canonical_options(mesh, model));
    const auto check = verifier.check(1, testing::batch_for(job, 1, testing::kCanonicalVocabulary), 1e-2).comparison;
    ASSERT_TRUE(check.agrees()) << name << ": " << check.beyond[0].text();
    EXPECT_EQ(check.differing_bits, 0) << name;
  }
}

uint64_t seed() {
  const char* given = std::getenv("LOCKSTEP_BITWISE_SEED");
  return given ? std::stoull(given) : std::random_device{}() % 1000000;
}

/// Any mesh of up to 14 ranks, any number of microbatches of one, two or four samples, in any order.
TEST(UnevenShards, HaveOneDevicesBitsWhateverIsDrawn) {
  const auto from = seed();
  std::mt19937_64 random(from);
  const auto one_of = [&](std::vector<int64_t> all) { return all[random() % all.size()]; };
  for (int draw = 0; draw < 8; ++draw) {
    const int64_t shards = one_of({2, 3, 5, 6, 7}), others = shards > 4 ? 1 : 2, replicas = one_of({1, others});
    const int64_t tensor = one_of({1, 14 / (shards * replicas) > 1 ? 2 : 1}), local = one_of({1, 1, 2, 4});
    const int64_t microbatches = one_of({1, 2, 3, 4, 5}), batch = shards * replicas * local * microbatches;
    const auto mesh = fmt::format("dp_replicate={},dp_shard={},tp={}", replicas, shards, tensor);
    std::vector<int64_t> order(static_cast<size_t>(microbatches));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    ASSERT_EQ(two_steps(job_of(batch, local), options_on(mesh), order), one_device(batch))
        << mesh << ", " << microbatches << " microbatches of " << local << " in the order "
        << ::testing::PrintToString(order) << "\nagain: LOCKSTEP_BITWISE_SEED=" << from;
  }
}

/// x + f(x) for the tokens from `kRare` on, and nothing at all of f in a microbatch that has none of them.
class RareModel final : public models::Model {
 public:
  static constexpr int64_t kRare = 20;

  at::Tensor forward(const at::Tensor& tokens) override {
    auto x = run_block(embedding_, tokens, [this](const at::Tensor& input) { return embedding_.forward(input); });
    const auto rare = at::ge(tokens, kRare);
    if (at::sum(rare).item<int64_t>() > 0)
      x = run_block(rare_, x, [&](const at::Tensor& input) {
        return input + rare_.forward(input * rare.to(at::kFloat).unsqueeze(-1));
      });
    return run_block(head_, x, [this](const at::Tensor& input) { return head_.forward(input); });
  }
  int64_t vocabulary() const override { return 29; }
  std::vector<Module*> blocks() override { return {&embedding_, &rare_, &head_}; }

 private:
  models::Embedding embedding_{*this, "embedding", 29, 32, models::Initial::drawn(rng::normal(0, 1))};
  models::Linear rare_{*this, "rare", {32, 32, "embed embed", models::Initial::drawn(rng::normal(0, 0.3))}};
  models::Linear head_{*this, "head", {32, 29, "embed embed", models::Initial::drawn(rng::normal(0, 0.3))}};
};

std::string one_step_of_rare(const char* mesh, int64_t local_batch, int64_t absent_until) {
  const auto job = job_of(12, local_batch);
  auto batch = testing::batch_for(job, 1);
  for (size_t i = 0; i < static_cast<size_t>(absent_until * batch.seq_len); ++i) batch.tokens[i] %= RareModel::kRare;
  TrainingRun run(job, options_on(mesh, [] { return std::make_unique<RareModel>(); }));
  const auto result = run.step(1, batch, 1e-2);
  return fmt::format("{:a} {:a} {}", result.loss, result.gradient_norm, state_digest(run.state()).text());
}

TEST(UnevenShards, GradientsMayBeAbsentFromMicrobatches) {
  for (const int64_t absent_until : {0, 3, 9, 12}) {
    const auto expected = one_step_of_rare("one device", 12, absent_until);
    for (const char* mesh : {"dp_shard=3", "dp_shard=6", "dp_replicate=2,dp_shard=3"})
      EXPECT_EQ(one_step_of_rare(mesh, 1, absent_until), expected) << mesh << ", none before sample " << absent_until;
  }
}

double sent(const char* mode, CollectiveKind kind) {
  auto job = job_of(12, 2);
  job.numerics.mode = mode;
  auto options = options_on("dp_shard=3");
  options.meta = true;
  TrainingRun run(job, options);
  EXPECT_EQ(run.batching().accumulation_steps, 2);
  run.world().traffic().clear();
  run.step(1, testing::batch_for(job, 1), 1e-2);
  return run.world().traffic().on("dp_shard", kind).bytes;
}

/// Each rank has one node, as many as reducing sends; what is joined later does not travel again.
TEST(UnevenShards, SendWhatNativeNumericsSends) {
  EXPECT_GT(sent("native", CollectiveKind::kReduceScatter), 0);
  EXPECT_EQ(sent("canonical", CollectiveKind::kAllToAll), sent("native", CollectiveKind::kReduceScatter));
  EXPECT_EQ(sent("canonical", CollectiveKind::kReduceScatter), 0);
  EXPECT_EQ(sent("canonical", CollectiveKind::kAllGather), sent("native", CollectiveKind::kAllGather));
}

}  // namespace
}  // namespace lockstep::trainer
