// Sequences that are cut: keys and values gathered, or heads exchanged. One device's bits, and the traffic that the
// forms have in writing. LOCKSTEP_BITWISE_SEED repeats a drawn run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "models/gpt2.h"
#include "runtime/context/world.h"
#include "tests/support/small_models.h"
#include "tests/trainer/stages/two_steps.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kMethods[] = {"allgather", kUlysses};

/// Six queries' heads, three of the keys: ranks of 2, 4 and more get uneven parts, or none.
std::unique_ptr<models::Model> llama(double attention_dropout) {
  auto options = testing::small_llama_options();
  options.attention_dropout = attention_dropout;
  options.dropout = 0.1;
  return std::make_unique<models::Llama>(options);
}

std::unique_ptr<models::Model> gpt2() {
  models::Gpt2Options options;
  options.width = 24, options.layers = 2, options.heads = 6, options.hidden = 36;
  options.vocabulary = 29, options.positions = 12;
  options.attention_dropout = 0.1;
  return std::make_unique<models::Gpt2>(options);
}

using ModelMaker = std::function<std::unique_ptr<models::Model>()>;
const std::vector<std::pair<const char*, ModelMaker>> kModels = {
    {"llama", [] { return llama(0); }}, {"llama, attention dropout", [] { return llama(0.1); }}, {"gpt2", gpt2}};

std::string two_steps(const Job& job, const std::string& mesh, const ModelMaker& make_model) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = make_model;
  TrainingRun run(job, std::move(options));
  return testing::two_steps(job, run);
}

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

constexpr int64_t kWidth = 32, kLength = 16, kLayers = 3, kRows = 4;

/// Of one step, on the axis cp.
Traffic traffic_of(const char* method, int64_t ranks) {
  auto job = job_of(kRows, method);
  job.numerics.mode = "native";
  job.training.seq_len = kLength;
  job.parallelism.strict = true;  // nothing moves without being asked to
  TrainingRun::Options options;
  options.mesh = parse_mesh(fmt::format("cp={}", ranks));
  options.meta = true;
  options.make_model = [] {
    models::LlamaOptions sizes;
    sizes.width = kWidth, sizes.layers = kLayers, sizes.heads = sizes.key_value_heads = 4, sizes.hidden = 64;
    sizes.vocabulary = 29, sizes.length = kLength;
    return std::make_unique<models::Llama>(sizes);
  };
  TrainingRun run(job, options);
  run.world().traffic().clear();
  run.step(1, testing::batch_for(job, 1), 1e-3);
  return run.world().traffic();
}

/// Queries, keys, values and what attention gives: of each a rank has rows * length * width / ranks floats, and keeps
/// one of its `ranks` parts; the same of their gradients. Instead of keys and values gathered, and their gradients
/// reduced.
TEST(ContextParallel, TrafficOfBothMethodsIsItsClosedForm) {
  for (const int64_t ranks : {2, 4}) {
    const auto gathered = traffic_of("allgather", ranks), exchanged = traffic_of(kUlysses, ranks);
    const auto part = static_cast<double>(4 * kRows * kLength * kWidth) / static_cast<double>(ranks);
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

}  // namespace
}  // namespace lockstep::trainer
