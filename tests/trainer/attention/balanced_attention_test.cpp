// Causal attention over cp in which early and late ranks exchange halves of their queries: one device's bits, the
// gathering form but for rounding in native numerics, and what is sent and computed in closed forms.
#include "trainer/attention/balanced_attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/context/world.h"
#include "tests/support/small_models.h"
#include "tests/trainer/attention/context_traffic.h"
#include "tests/trainer/stages/two_steps.h"
#include "trainer/attention/query_rows.h"

namespace lockstep::trainer {
namespace {

using testing::ContextTrial;
using testing::two_steps;

/// Parts that are one node of the tree over rows, several, uneven, and none; an odd number of them, of which the middle
/// one has no partner.
constexpr ContextTrial kTrials[] = {{"cp=2", 128},
                                    {"cp=2", 160, 1, "bfloat16"},
                                    {"cp=3", 256, 1, "float32", "full"},
                                    {"cp=3", 300, 2},
                                    {"cp=4", 530, 2, "bfloat16"},
                                    {"cp=5", 600, 1},
                                    {"cp=8", 555, 1},
                                    {"cp=7", 9, 2},
                                    {"dp_shard=2,cp=2,tp=2", 128, 1},
                                    {"dp_shard=3,cp=4", 256, 1},
                                    {"cp=2,tp=3", 130, 2, "bfloat16", "full"},
                                    {"pp=2,cp=4", 300, 2, "float32", "none", "ZBH1"},
                                    {"pp=2,dp_replicate=2,cp=2", 129, 1, "bfloat16", "selective"}};

/// Six heads of queries, three of keys.
std::unique_ptr<models::Model> llama(double attention_dropout) {
  auto options = testing::small_llama_options();
  options.length = 600, options.attention_dropout = attention_dropout;
  return std::make_unique<models::Llama>(options);
}
std::unique_ptr<models::Model> long_llama() { return llama(0); }
std::unique_ptr<models::Model> dropping_llama() { return llama(0.2); }

Job job_of(const ContextTrial& trial, const char* balancer) {
  auto job = trial.applied_to(testing::small_job());
  job.training.global_batch_size = 6;
  job.activation_checkpoint.selective_ac_option = "op";
  job.parallelism.context_parallel_load_balancer = balancer;
  return job;
}

TEST(BalancedAttention, HasTheBitsOfOneDevice) {
  for (const auto& trial : kTrials)
    EXPECT_EQ(two_steps(job_of(trial, kHeadTail), trial.mesh, long_llama),
              two_steps(job_of(trial, ""), "one device", long_llama))
        << trial.mesh << " " << trial.length;
}

/// Which weights are dropped goes with the rows.
TEST(BalancedAttention, HasTheBitsOfOneDeviceThatDropsWeights) {
  for (size_t i = 0; i < std::size(kTrials); i += 2)
    EXPECT_EQ(two_steps(job_of(kTrials[i], kHeadTail), kTrials[i].mesh, dropping_llama),
              two_steps(job_of(kTrials[i], ""), "one device", dropping_llama))
        << kTrials[i].mesh << " " << kTrials[i].length;
}

/// A job that exchanges heads has whole sequences.
TEST(BalancedAttention, LeavesOthersAsTheyAre) {
  const ContextTrial trial{"cp=2", 128};
  auto exchanged = job_of(trial, kHeadTail);
  exchanged.parallelism.context_parallel_rotate_method = kUlysses;
  EXPECT_EQ(two_steps(exchanged, "cp=2", long_llama), two_steps(job_of(trial, ""), "one device", long_llama));
}

std::pair<double, double> native_step(const ContextTrial& trial, const char* balancer, double dropout) {
  auto job = job_of(trial, balancer);
  job.numerics.mode = "native";
  TrainingRun::Options options;
  options.mesh = parse_mesh(trial.mesh);
  options.make_model = [=] { return llama(dropout); };
  TrainingRun run(job, std::move(options));
  run.step(1, testing::batch_for(job, 1), 1e-2);
  const auto result = run.step(2, testing::batch_for(job, 2), 1e-2);
  return {result.loss, result.gradient_norm};
}

TEST(BalancedAttention, NativeAgreesWithTheGatheringFormButForRounding) {
  for (const auto& trial : kTrials) {
    if (std::string_view(trial.dtype) != "float32") continue;
    const double dropout = &trial - kTrials < 6 ? 0 : 0.2;
    const auto [loss, norm] = native_step(trial, kHeadTail, dropout);
    const auto [expected, expected_norm] = native_step(trial, "", dropout);
    EXPECT_NEAR(loss, expected, 1e-5) << trial.mesh;
    EXPECT_NEAR(norm, expected_norm, 1e-4 * expected_norm) << trial.mesh;
  }
}

/// Pairs of a query and a key that it sees, of each part of a sequence, canonical numerics.
std::vector<int64_t> pairs_of(int64_t parts, int64_t length, int64_t leaf) {
  World world({.rank_count = static_cast<int>(parts), .numerics = Numerics::kCanonical});
  const auto& mesh = world.mesh(fmt::format("cp={}", parts));
  const auto* query = mesh.specs().intern(Layout(mesh, {Placement::shard(2, leaf)}), {1, 1, length, 1}, c10::kFloat);
  const QueryRows rows(*query, Balance::kHeadTail);
  std::vector<int64_t> pairs(static_cast<size_t>(parts));
  for (int64_t part = 0; part < rows.parts().count(); ++part)
    for (const auto& half : rows.computed_by(part))
      for (int64_t row = 0; row < half.positions.length; ++row)
        pairs[static_cast<size_t>(part)] += half.positions.start + row + 1;
  return pairs;
}

TEST(BalancedAttention, EveryPartSeesAsManyKeys) {
  EXPECT_EQ(pairs_of(2, 128, 32), std::vector<int64_t>(2, 128 * 129 / 4));
  EXPECT_EQ(pairs_of(4, 8192, 128), std::vector<int64_t>(4, 8192 * 8193 / 8));
  const auto odd = pairs_of(3, 8192, 128);  // 22, 22 and 20 leaves; the middle part has no partner
  const auto [least, most] = std::ranges::minmax(odd);
  EXPECT_LT(static_cast<double>(most), 1.2 * static_cast<double>(least));
}

/// Half of a rank's queries go, and what attention gives of its partner's, forward and backward; of an odd number of
/// ranks the middle one has no partner. Keys and values are gathered as before; their gradients go to each part that a
/// rank's rows see: rank r of n sends to all up to its partner's (or its own) but itself.
TEST(BalancedAttention, TrafficIsItsClosedForm) {
  constexpr testing::ContextTraffic kSmall{96};
  constexpr int64_t kLayers = testing::ContextTraffic::kLayers;
  for (const bool meta : {false, true})
    for (const int64_t ranks : {2, 3, 4}) {
      auto job = testing::native_job();
      const auto gathered = kSmall.of_step(job, ranks, meta);
      job.parallelism.context_parallel_load_balancer = kHeadTail;
      const auto balanced = kSmall.of_step(job, ranks, meta);
      const int64_t exchanging = ranks / 2 * 2;
      int64_t pieces = 0;
      for (int64_t r = 0; r < ranks; ++r) pieces += std::max(r, ranks - 1 - r);
      const auto sent = balanced.on("cp", CollectiveKind::kTransfer);
      EXPECT_EQ(sent.count, kLayers * (4 * exchanging + 2 * pieces));
      EXPECT_EQ(sent.bytes, static_cast<double>(kLayers * (2 * exchanging + 2 * pieces)) * kSmall.part(ranks));
      const auto more = [&](CollectiveKind kind) {
        return gathered.on("cp", kind).count - balanced.on("cp", kind).count;
      };
      EXPECT_EQ(more(CollectiveKind::kAllGather), 0);
      EXPECT_EQ(more(CollectiveKind::kReduceScatter), 2 * kLayers);
    }
}

}  // namespace
}  // namespace lockstep::trainer
