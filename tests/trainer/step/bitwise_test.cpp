// Whole training steps under canonical numerics: loss, every gradient, the gradient norm, every parameter and optimizer
// state have one device's bits on every mesh. A seed picks every fourth mesh and, for each, a model, checkpointing and
// a thread count: only these are tests of the run. LOCKSTEP_BITWISE_SEED repeats one, LOCKSTEP_SOAK runs every model on
// every mesh for 50 steps.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/canonical_models.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/temporary_folder.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using testing::CanonicalModel;
using testing::kCanonicalModels;

bool soaks() { return std::getenv("LOCKSTEP_SOAK") != nullptr; }

struct BitwiseMesh {
  const char* mesh;
  int64_t batch, local_batch;  ///< global, and of a data-parallel rank in a microbatch
};

constexpr BitwiseMesh kMeshes[] = {
    {"dp_replicate=2", 8, 4},
    {"dp_replicate=2", 8, 2},
    {"dp_replicate=2", 8, 1},
    {"dp_replicate=3", 6, 2},
    {"dp_replicate=3", 12, 1},
    {"dp_replicate=2", 12, 2},
    {"dp_shard=2", 8, 4},
    {"dp_shard=2", 8, 2},
    {"dp_shard=2", 8, 1},
    {"dp_shard=3", 6, 2},
    {"dp_shard=3", 9, 1},
    {"dp_shard=3", 12, 2},
    {"dp_shard=4", 8, 1},
    {"dp_shard=5", 5, 1},
    {"dp_shard=5", 10, 1},
    {"dp_shard=6", 6, 1},
    {"dp_shard=6", 12, 1},
    {"dp_shard=7", 7, 1},
    {"dp_shard=7", 14, 1},
    {"dp_shard=8", 8, 1},
    {"dp_shard=8", 32, 1},
    {"tp=2", 7, 7},
    {"tp=2", 4, 1},
    {"tp=3", 3, 3},
    {"tp=4", 4, 2},
    {"tp=5", 2, 2},
    {"tp=6", 3, 3},
    {"tp=7", 2, 2},
    {"tp=8", 4, 4},
    {"dp_replicate=2,dp_shard=2", 8, 1},
    {"dp_replicate=2,dp_shard=2", 16, 2},
    {"dp_replicate=2,dp_shard=3", 6, 1},
    {"dp_replicate=2,dp_shard=3", 12, 1},
    {"dp_shard=2,tp=2", 8, 2},
    {"dp_shard=3,tp=2", 3, 1},
    {"dp_shard=3,tp=2", 6, 1},
    {"dp_replicate=2,tp=3", 4, 1},
    {"dp_shard=7,tp=2", 7, 1},
    {"dp_replicate=2,dp_shard=2,tp=2", 8, 1},
    {"dp_replicate=2,dp_shard=4,tp=4", 8, 1},
    {"dp_shard=4,tp=8", 4, 1},
    {"cp=2", 7, 7},
    {"cp=3", 4, 1},
    {"cp=8", 2, 2},
    {"dp_shard=2,cp=2", 8, 2},
    {"cp=2,tp=2", 3, 3},
    {"dp_replicate=2,cp=3", 4, 1},
    {"dp_replicate=2,dp_shard=2,cp=2,tp=2", 8, 1},
    {"dp_replicate=2,dp_shard=3,cp=2,tp=3", 6, 1},
};

struct Variant {
  const CanonicalModel* model;
  const char* checkpointing;
  int threads;
  std::string text() const {
    return fmt::format("model \"{}\", activation checkpointing {}, {} threads", model->name, checkpointing, threads);
  }
};

std::vector<Variant> all_variants() {
  std::vector<Variant> all;
  for (const auto& model : kCanonicalModels)
    for (const char* checkpointing : {"none", "full", "selective"})
      for (const int threads : {1, 2, 4})
        // More threads than cores are slow.
        if (threads < 4 || soaks()) all.push_back({&model, checkpointing, threads});
  return all;
}

uint64_t slice_seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("LOCKSTEP_BITWISE_SEED");
    return given ? std::stoull(given) : std::random_device{}() % 1000000;
  }();
  return seed;
}

/// In a soak all meshes; otherwise every fourth: a mesh that is not visited is no test, so that none passes unrun.
std::vector<size_t> visited_meshes() {
  std::vector<size_t> visited;
  for (size_t mesh = 0; mesh < std::size(kMeshes); ++mesh)
    if (soaks() || (mesh + slice_seed()) % 4 == 0) visited.push_back(mesh);
  return visited;
}

/// In a soak every model, with checkpointing and threads in turn; otherwise one of all.
std::vector<Variant> variants_for(size_t mesh) {
  const auto all = all_variants();
  std::mt19937_64 random(slice_seed() * 1000 + mesh);
  if (!soaks()) return {all[random() % all.size()]};
  std::vector<Variant> chosen;
  const size_t models = std::size(kCanonicalModels), ways = all.size() / models;
  for (size_t model = 0; model < models; ++model) chosen.push_back(all[model * ways + (mesh + model) % ways]);
  return chosen;
}

Job bitwise_job(const BitwiseMesh& mesh, const Variant& variant) {
  auto job = testing::canonical_job(*variant.model, mesh.batch, mesh.local_batch);
  job.activation_checkpoint.mode = variant.checkpointing;
  return job;
}

TokenBatch batch_for(const Job& job, int64_t step) {
  return testing::batch_for(job, step, testing::kCanonicalVocabulary);
}

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~ThreadCount() { at::set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

void expect_one_devices_bits(const BitwiseMesh& mesh, const Variant& variant) {
  const ThreadCount threads(variant.threads);
  const auto job = bitwise_job(mesh, variant);
  StepVerifier verifier(job, testing::canonical_options(mesh.mesh, *variant.model));
  const int64_t steps = soaks() ? 50 : 2;
  for (int64_t step = 1; step <= steps; ++step) {
    const auto check = verifier.check(step, batch_for(job, step), 1e-2);
    ASSERT_TRUE(check.comparison.agrees() && check.comparison.differing_bits == 0)
        << mesh.mesh << ", batch " << mesh.batch << " by " << mesh.local_batch << ", " << variant.text() << ", step "
        << step << ": " << check.comparison.differing_bits << " differing bits; " << check.comparison.beyond[0].text()
        << "\n"
        << (check.blame ? check.blame->text() : "") << "\nagain: LOCKSTEP_BITWISE_SEED=" << slice_seed()
        << " build/release/tests/test_trainer --gtest_filter='*Bitwise*'";
  }
}

class Bitwise : public ::testing::TestWithParam<size_t> {};

TEST_P(Bitwise, EveryMeshHasOneDevicesBits) {
  RecordProperty("LOCKSTEP_BITWISE_SEED", static_cast<int>(slice_seed()));
  for (const auto& variant : variants_for(GetParam())) expect_one_devices_bits(kMeshes[GetParam()], variant);
}

std::string mesh_name(const ::testing::TestParamInfo<size_t>& info) {
  const auto& mesh = kMeshes[info.param];
  auto name = fmt::format("{}_batch_{}_by_{}", mesh.mesh, mesh.batch, mesh.local_batch);
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Meshes, Bitwise, ::testing::ValuesIn(visited_meshes()), mesh_name);

/// "untied 1a2b..." for every model: two steps on one device.
std::string digests_of_all_models() {
  std::string text;
  for (const auto& model : std::span(kCanonicalModels).first(soaks() ? std::size(kCanonicalModels) : 2)) {
    const Variant variant{&model, "none", 1};
    const auto job = bitwise_job({"one device", 3, 3}, variant);
    TrainingRun run(job, testing::canonical_options("one device", model));
    double loss = 0, norm = 0;
    for (int64_t step = 1; step <= 2; ++step) {
      const auto result = run.step(step, batch_for(job, step), 1e-2);
      loss = result.loss;
      norm = result.gradient_norm;
    }
    text += fmt::format("{}: {:a} {:a} {}\n", model.name, loss, norm, state_digest(run.state()).text());
  }
  return text;
}

/// The other half of the next test, in a process of its own.
TEST(BitwiseMachine, WritesDigests) {
  const char* path = std::getenv("LOCKSTEP_BITWISE_DIGESTS");
  if (!path) GTEST_SKIP() << "run by BitwiseMachine.InstructionSetAndThreadsChangeNoBit";
  std::ofstream(path) << name_of(best_instruction_set()) << "\n" << digests_of_all_models();
}

class BitwiseMachine : public testing::OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, BitwiseMachine, testing::every_set(), testing::set_name);

/// A process limited to the set, on one thread, two or four, beside this one.
TEST_P(BitwiseMachine, InstructionSetAndThreadsChangeNoBit) {
  static const auto here = digests_of_all_models();
  const TemporaryFolder folder;
  const int threads = 1 << static_cast<int>(GetParam());
  const auto command = fmt::format(
      "{}LOCKSTEP_BITWISE_DIGESTS={} OMP_NUM_THREADS={} /proc/{}/exe --gtest_filter=BitwiseMachine.WritesDigests "
      "> /dev/null 2>&1",
      testing::limited_to(GetParam()), folder.file("digests"), threads, getpid());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_EQ(file_content(folder.file("digests")), fmt::format("{}\n{}", name_of(GetParam()), here))
      << threads << " threads";
}

/// The lowest bit of the first element of the table on one rank.
void adamw_with_a_flipped_bit(const LocalCall& call, torch::jit::Stack& stack) {
  const auto parameter = stack[0].toTensor();
  call.op.callBoxed(stack);
  if (call.index == 1 && parameter.size(0) > 1000) *static_cast<uint32_t*>(parameter.mutable_data_ptr()) ^= 1;
}

TEST(BitwisePlanted, OneBitIsFoundAndNamed) {
  const auto job = bitwise_job({"dp_shard=2", 4, 2}, {&kCanonicalModels[1], "none", 1});
  auto options = testing::canonical_options("dp_shard=2", kCanonicalModels[1]);
  Rule rule = *built_in_rules(Numerics::kCanonical)->find("mesh::adamw");
  rule.local = adamw_with_a_flipped_bit;
  options.rules = built_in_rules(Numerics::kCanonical)->with(rule);
  StepVerifier verifier(job, options);
  const auto check = verifier.check(1, batch_for(job, 1), 1e-2);
  ASSERT_FALSE(check.comparison.agrees());
  EXPECT_EQ(check.comparison.differing_bits, 1);
  EXPECT_EQ(check.comparison.beyond[0].kind, "parameter");
  EXPECT_EQ(check.comparison.beyond[0].name, "tok_embeddings.weight");
}

}  // namespace
}  // namespace lockstep::trainer
