#pragma once
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fuzz/trials/streams.h"
#include "runtime/context/world.h"

namespace lockstep::testing {

/// Every rank of a mesh runs `program` in a thread and a World of its own. What went wrong on each, or "".
inline std::vector<std::string> run_ranks(int ranks, StreamKind kind, const std::function<void(World&)>& program,
                                          lockstep::Numerics numerics = lockstep::Numerics::kNative,
                                          const std::shared_ptr<const RuleSet>& rules = nullptr) {
  auto transports = connected_transports(ranks, kind, std::chrono::seconds{20});
  std::vector<std::string> problems(transports.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto place = static_cast<size_t>(rank);
      try {
        World world({.rank_count = ranks,
                     .local_ranks = {rank},
                     .transport = std::move(transports[place]),
                     .numerics = numerics,
                     .rules = rules});
        program(world);
      } catch (const std::exception& error) {
        problems[place] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return problems;
}

}  // namespace lockstep::testing
