#pragma once
#include <thread>
#include <vector>

#include "runtime/context/world.h"
#include "runtime/transport/simulated.h"

namespace lockstep::testing {

/// What `program` makes of two Worlds, each with every other rank, in a thread of its own; their messages arrive in a
/// seeded order. It must not throw.
template <class Program>
auto in_two_groups(const World::Options& options, uint64_t seed, const Program& program) {
  const auto transport = std::make_shared<SimulatedTransport>(seed, 2);
  std::vector<decltype(program(std::declval<World&>()))> outcomes(2);
  std::vector<std::thread> threads;
  for (int group = 0; group < 2; ++group)
    threads.emplace_back([&, group] {
      auto mine = options;
      mine.transport = transport;
      for (int rank = group; rank < options.rank_count; rank += 2) mine.local_ranks.push_back(rank);
      {
        World world(std::move(mine));
        outcomes[static_cast<size_t>(group)] = program(world);
      }
      transport->leave();
    });
  for (auto& thread : threads) thread.join();
  return outcomes;
}

}  // namespace lockstep::testing
