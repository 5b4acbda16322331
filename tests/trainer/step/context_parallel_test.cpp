// Sequences that are cut: keys and values gathered, or passed round, or heads exchanged. One device's bits, and the
// traffic that the forms have in writing. LOCKSTEP_BITWISE_SEED repeats a drawn run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "core/error.h"
#include "models/families/gpt2.h"
#include "runtime/context/world.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "tests/trainer/attention/context_traffic.h"
#include "tests/trainer/stages/two_steps.h"

namespace lockstep::trainer {
namespace {

using testing::ContextTrial;
using ::testing::HasSubstr;
using testing::two_steps;

constexpr const char* kMethods[] = {"allgather", kUlysses};

/// Six queries' heads, three of the keys: ranks of 2, 4 and more get uneven parts, or none.
std::unique_ptr<models::Model> llama(double attention_dropout) {
  auto options = testing::small_llama_options();
  options.attention_dropout = attention_dropout;
  options.dropout = 0.1;
  return std::make_unique<models::Llama>(options);
}

std::unique_ptr<models::Model> gpt2() {
  auto options = testing::small_gpt2_options();
  options.attention_dropout = 0.1;
  return std::make_unique<models::Gpt2>(options);
}

using ModelMaker = std::function<std::unique_ptr<models::Model>()>;
const std::vector<std::pair<const char*, ModelMaker>> kModels = {
    {"llama", [] { return llama(0); }}, {"llama, attention dropout", [] { return llama(0.1); }}, {"gpt2", gpt2}};

Job job_of(int64_t local_batch, const char* method) {
  auto job = testing::small_job();
  job.training.global_batch_size = 4;
  job.training.local_batch_size = local_batch;
  job.parallelism.context_parallel_rotate_method = method;
  return job;
}

TEST(ContextParallel, BothMethodsHaveTheBitsOfOneDevice) {
  const char* from = std::getenv("LOCKSTEP_BITWISE_SEED");
  const auto seed = from ? std::stoull(from) : std::random_device{}();
  std::mt19937_64 random(seed);
  const auto one_of = [&](std::vector<int64_t> values) { return values[random() % values.size()]; };
  for (int run = 0; run < 20; ++run) {
    const auto& [name, make_model] = kModels[random() % kModels.size()];
    const auto mesh =
        fmt::format("dp_shard={},cp={},tp={}", one_of({1, 1, 2}), one_of({2, 3, 4, 7}), one_of({1, 2, 3}));
    auto job = job_of(one_of({1, 2}), kMethods[random() % 2]);
    job.activation_checkpoint.mode = one_of({0, 1}) ? "full" : "none";
    ASSERT_EQ(two_steps(job, mesh, make_model), two_steps(job_of(4, "allgather"), "one device", make_model))
        << name << ", " << mesh << ", " << job.parallelism.context_parallel_rotate_method
        << "\nagain: LOCKSTEP_BITWISE_SEED=" << seed;
  }
}

/// Blocks of 256 keys go round whole.
ModelMaker long_llama(double attention_dropout = 0) {
  return [=]() -> std::unique_ptr<models::Model> {
    auto options = testing::small_llama_options();
    options.length = 2048;
    options.dropout = 0.1, options.attention_dropout = attention_dropout;
    return std::make_unique<models::Llama>(options);
  };
}

Job long_job(int64_t length, const char* method) {
  auto job = job_of(2, method);
  job.training.seq_len = length;
  job.training.global_batch_size = 2;
  job.training.local_batch_size = 2;
  return job;
}

constexpr ContextTrial kRingTrials[] = {{"cp=2", 512},
                                        {"cp=2", 1024, 1, "bfloat16"},
                                        {"cp=4", 1024, 1, "float32", "full"},
                                        {"cp=8", 2048, 2, "bfloat16"},
                                        {"dp_shard=2,cp=2,tp=2", 512, 1},
                                        {"cp=2,tp=3", 512, 2, "bfloat16", "full"},
                                        {"pp=2,dp_replicate=2,cp=2", 512, 1, "float32", "full", "ZBH1"},
                                        {"pp=2,cp=2", 512, 2, "bfloat16", "none", "ZBH1"}};

Job job_of(const ContextTrial& trial, const char* method) { return trial.applied_to(long_job(trial.length, method)); }

TEST(RingAttention, HasTheBitsOfOneDevice) {
  for (const auto& trial : kRingTrials)
    for (const double dropout : {0.0, 0.3}) {
      const auto expected = two_steps(job_of(trial, "allgather"), "one device", long_llama(dropout));
      for (const char* balancer : {"", kHeadTail}) {
        auto job = job_of(trial, kRing);
        job.parallelism.context_parallel_load_balancer = balancer;
        EXPECT_EQ(two_steps(job, trial.mesh, long_llama(dropout)), expected)
            << trial.mesh << " " << trial.length << balancer << " drops " << dropout;
      }
    }
}

/// One device would agree, too, if neither dropped anything.
TEST(RingAttention, DropsWeights) {
  const auto state = [](double dropout) { return two_steps(long_job(512, kRing), "cp=2", long_llama(dropout)); };
  EXPECT_NE(state(0.3), state(0));
}

/// Native numerics put partial results together: what the gathering form has, but for rounding.
TEST(RingAttention, NativeAgreesButForRounding) {
  // Of 9 tokens on 8 ranks three have none.
  for (const auto& [mesh, length, dropout] : {std::tuple{"cp=2", 600, 0.0},
                                              {"cp=2", 600, 0.3},
                                              {"cp=3", 601, 0.3},
                                              {"cp=2,tp=3", 602, 0.0},
                                              {"cp=8", 9, 0.3}}) {
    const auto loss = [&, mesh = mesh, length = length, dropout = dropout](const char* method,
                                                                           const char* balancer = "") {
      auto job = long_job(length, method);
      job.parallelism.context_parallel_load_balancer = balancer;
      job.numerics.mode = "native";
      TrainingRun::Options options;
      options.mesh = parse_mesh(mesh);
      options.make_model = long_llama(dropout);
      TrainingRun run(job, std::move(options));
      run.step(1, testing::batch_for(job, 1), 1e-2);
      const auto result = run.step(2, testing::batch_for(job, 2), 1e-2);
      return std::pair(result.loss, result.gradient_norm);
    };
    const auto [loss_of_gathered, norm_of_gathered] = loss("allgather");
    for (const char* balancer : {"", kHeadTail}) {
      const auto [ring_loss, ring_norm] = loss(kRing, balancer);
      EXPECT_NEAR(ring_loss, loss_of_gathered, 1e-5) << mesh << balancer;
      EXPECT_NEAR(ring_norm, norm_of_gathered, 1e-5 * norm_of_gathered) << mesh << balancer;
    }
  }
}

/// A third of 64 leaves is three nodes of the tree over query rows: what goes back is several pieces.
TEST(RingAttention, HasTheBitsOfOneDeviceWhereAPartIsSeveralNodes) {
  const auto make_model = [] {
    auto options = testing::small_llama_options();
    options.width = 8, options.layers = options.heads = options.key_value_heads = 1, options.hidden = 8;
    options.length = 8192;
    return std::make_unique<models::Llama>(options);
  };
  const auto digest = [&](const char* method, const char* mesh, const char* balancer = "") {
    auto job = long_job(8192, method);
    job.parallelism.context_parallel_load_balancer = balancer;
    job.training.global_batch_size = job.training.local_batch_size = 1;
    TrainingRun::Options options;
    options.mesh = parse_mesh(mesh);
    options.make_model = make_model;
    TrainingRun run(job, std::move(options));
    run.step(1, testing::batch_for(job, 1), 1e-2);
    return state_digest(run.state()).text();
  };
  const auto expected = digest("allgather", "one device");
  EXPECT_EQ(digest(kRing, "cp=3"), expected);
  EXPECT_EQ(digest(kRing, "cp=3", kHeadTail), expected);
}

TEST(RingAttention, RefusesWhatItCannotDo) {
  const auto refused = [](const Job& job, const char* mesh, const ModelMaker& make_model) {
    return testing::message_of<BadInput>([&] { two_steps(job, mesh, make_model); });
  };
  EXPECT_THAT(
      refused(long_job(768, kRing), "cp=2", long_llama()),
      HasSubstr("training.seq_len 768: sequences are cut at 384, and canonical numerics takes the keys of a ring "
                "in blocks of 256. training.seq_len 1024 would do."));
  EXPECT_THAT(refused(long_job(1536, kRing), "cp=3", long_llama()), HasSubstr("training.seq_len 8192 would do."));
  auto validated = long_job(512, kRing);
  validated.validation.enable = true;
  validated.validation.seq_len = 128;
  EXPECT_THAT(refused(validated, "cp=2", long_llama()), HasSubstr("validation.seq_len 128: sequences are cut at 64"));
}

constexpr testing::ContextTraffic kSmall{16};
constexpr int64_t kLayers = testing::ContextTraffic::kLayers;

Traffic traffic_of(const char* method, int64_t ranks, bool meta = true, const char* balancer = "") {
  auto job = job_of(4, method);
  job.parallelism.context_parallel_load_balancer = balancer;
  return kSmall.of_step(job, ranks, meta);
}

/// Queries, keys, values and what attention gives: of each a rank has rows * length * width / ranks floats, and keeps
/// one of its `ranks` parts; the same of their gradients. Instead of keys and values gathered, and their gradients
/// reduced.
TEST(ContextParallel, TrafficOfBothMethodsIsItsClosedForm) {
  for (const int64_t ranks : {2, 4}) {
    const auto gathered = traffic_of("allgather", ranks), exchanged = traffic_of(kUlysses, ranks);
    const auto part = kSmall.part(ranks);
    const auto more = [&](CollectiveKind kind) {
      const auto with = gathered.on("cp", kind), without = exchanged.on("cp", kind);
      return std::pair(with.count - without.count, with.bytes - without.bytes);
    };
    const auto others = static_cast<double>(ranks - 1);
    const std::pair keys_and_values(2 * kLayers, 2 * kLayers * part * others);
    EXPECT_EQ(more(CollectiveKind::kAllGather), keys_and_values);
    EXPECT_EQ(more(CollectiveKind::kReduceScatter), keys_and_values);
    const std::pair all_four_twice(-8 * kLayers, -8 * kLayers * part * others / static_cast<double>(ranks));
    EXPECT_EQ(more(CollectiveKind::kAllToAll), all_four_twice);
  }
}

/// Keys and values of each part pass by all parts behind it, forward and again backward, and gradients of both come
/// back: three quarters of what is gathered and reduced, as nobody attends to keys behind its own.
TEST(RingAttention, TrafficIsItsClosedForm) {
  for (const auto& [ranks, meta] : {std::pair<int64_t, bool>{2, false}, {4, false}, {2, true}, {4, true}}) {
    const auto went_round = traffic_of(kRing, ranks, meta), exchanged = traffic_of(kUlysses, ranks);
    const auto sent = went_round.on("cp", CollectiveKind::kTransfer);
    const int64_t ways = kLayers * 6 * ranks * (ranks - 1) / 2;
    EXPECT_EQ(sent.count, ways);
    EXPECT_EQ(sent.bytes, static_cast<double>(ways) * kSmall.part(ranks));
    for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
      EXPECT_EQ(went_round.on("cp", kind).count, exchanged.on("cp", kind).count);
    EXPECT_EQ(went_round.on("cp", CollectiveKind::kAllToAll).count, 0);
  }
}

/// Balanced, keys of part f of n also go round to the first n - f ranks, whose partners' rows see them, unless these
/// have had them; and halves of queries and of what attention gives are exchanged, forward and backward.
TEST(RingAttention, TrafficOfABalancedOneIsItsClosedForm) {
  for (const auto& [ranks, meta] : {std::pair<int64_t, bool>{2, false}, {3, false}, {2, true}, {3, true}, {4, true}}) {
    const auto sent = traffic_of(kRing, ranks, meta, kHeadTail).on("cp", CollectiveKind::kTransfer);
    int64_t ways = 0;
    for (int64_t of = 0; of < ranks; ++of) ways += ranks - of - 1 + std::min(ranks - of, of);
    const int64_t halves = kLayers * 4 * (ranks / 2 * 2);
    EXPECT_EQ(sent.count, kLayers * 6 * ways + halves) << ranks;
    EXPECT_NEAR(sent.bytes,
                (static_cast<double>(kLayers * 6 * ways) + static_cast<double>(halves) / 2) * kSmall.part(ranks),
                ranks == 3 ? 0.2 * sent.bytes : 0)
        << ranks;
  }
}

}  // namespace
}  // namespace lockstep::trainer
