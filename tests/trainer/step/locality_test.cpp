// Where a rank lives must not matter: the same training steps with all ranks in one World, with the ranks split over
// two threads, and with one thread per rank, over messages in random order, give the same bits.
#include <gtest/gtest.h>

#include <thread>

#include "core/error.h"
#include "runtime/transport/simulated.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

struct Outcome {
  std::string numbers;  ///< loss and gradient norm of the last step, in hexadecimal
  std::string digest;
  bool operator==(const Outcome&) const = default;
};

Outcome train_on(const char* mesh, std::vector<int> local_ranks, std::shared_ptr<Transport> transport) {
  auto job = testing::small_job();
  job.training.local_batch_size = 2;  // with accumulation
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.local_ranks = std::move(local_ranks);
  options.transport = std::move(transport);
  options.make_model = testing::small_llama;
  TrainingRun run(job, options);
  Outcome outcome;
  for (int64_t step = 1; step <= 2; ++step) {
    const auto result = run.step(step, testing::batch_for(job, step), 1e-2);
    outcome.numbers = fmt::format("{:a} {:a}", result.loss, result.gradient_norm);
  }
  outcome.digest = state_digest(run.state()).text();
  return outcome;
}

/// One thread per group of ranks; each must come to the same outcome.
std::vector<Outcome> train_on_threads(const char* mesh, const std::vector<std::vector<int>>& groups, uint64_t seed) {
  const auto transport = std::make_shared<SimulatedTransport>(seed, static_cast<int>(groups.size()));
  std::vector<Outcome> outcomes(groups.size());
  std::vector<std::string> errors(groups.size());
  std::vector<std::thread> threads;
  for (size_t g = 0; g < groups.size(); ++g)
    threads.emplace_back([&, g] {
      try {
        outcomes[g] = train_on(mesh, groups[g], transport);
      } catch (const std::exception& error) {
        errors[g] = error.what();
      }
      transport->leave();
    });
  for (auto& thread : threads) thread.join();
  for (size_t g = 0; g < groups.size(); ++g) EXPECT_EQ(errors[g], "") << "group " << g;
  return outcomes;
}

class Locality : public ::testing::TestWithParam<const char*> {};

TEST_P(Locality, ChangesNoBit) {
  const auto ranks = static_cast<int>(parse_mesh(GetParam()).ranks());
  const auto expected = train_on(GetParam(), {}, nullptr);
  EXPECT_EQ(train_on(GetParam(), {}, std::make_shared<SimulatedTransport>(11)), expected) << "messages, one thread";
  std::vector<std::vector<int>> halves(2), singles;
  for (int rank = 0; rank < ranks; ++rank) {
    halves[static_cast<size_t>(rank % 2)].push_back(rank);
    singles.push_back({rank});
  }
  for (const auto& outcome : train_on_threads(GetParam(), halves, 12)) EXPECT_EQ(outcome, expected) << "two groups";
  for (const auto& outcome : train_on_threads(GetParam(), singles, 13)) EXPECT_EQ(outcome, expected) << "one rank each";
}

INSTANTIATE_TEST_SUITE_P(Meshes, Locality,
                         ::testing::Values("dp_shard=2", "tp=3", "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=3",
                                           "dp_shard=3", "cp=2,tp=2"));

}  // namespace
}  // namespace lockstep::trainer
