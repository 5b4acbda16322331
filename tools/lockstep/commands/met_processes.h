#pragma once
#include <functional>

#include "tools/lockstep/arguments.h"
#include "trainer/identity/facts.h"
#include "trainer/launch/rendezvous.h"

/// Commands that may be one of many processes.
namespace lockstep::tool {

/// Meets the other processes of the launch (join_processes()) once all have come with these facts, and takes a GPU
/// where the job runs on one. Where they disagree, rank 0 writes that to --json. One process meets nobody, and no facts
/// are asked for.
trainer::Processes meet(const Output& output, const trainer::Job& job, const std::function<trainer::Facts()>& facts,
                        int64_t ranks);

/// Calls `work`. An error that ends it is in the other ranks' errors, too.
template <class Work>
auto said_last(const trainer::Processes& processes, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    trainer::say_last(processes, error);
    throw;
  }
}

}  // namespace lockstep::tool
