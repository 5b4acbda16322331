#pragma once
#include <array>
#include <future>
#include <string>

#include "core/files/file_descriptor.h"
#include "runtime/transport/rendezvous/address.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {

/// Two ranks of one job that no launcher started, each with its own arguments; a rank runs in its `folders`, or where
/// these are empty in the source tree. What each left behind, rank 0's first.
inline std::array<Run, 2> run_two_ranks(const std::array<std::string, 2>& arguments,
                                        const std::array<std::string, 2>& folders = {}) {
  Address store;
  listen_on({"127.0.0.1", 0}, store);  // closed again: rank 0 will listen there
  const auto rank = [&](size_t number) {
    const auto& folder = folders[number];
    return run_lockstep(arguments[number], (folder.empty() ? "" : "cd '" + folder + "' && ") +
                                               "WORLD_SIZE=2 RANK=" + std::to_string(number) +
                                               " MASTER_ADDR=127.0.0.1 LOCKSTEP_JOB_TOKEN=0123456789abcdef" +
                                               " MASTER_PORT=" + std::to_string(store.port) + " ");
  };
  auto other = std::async(std::launch::async, rank, 1);
  auto mine = rank(0);
  return {std::move(mine), other.get()};
}

}  // namespace lockstep
