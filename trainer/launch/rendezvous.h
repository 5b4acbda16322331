#pragma once
#include <exception>
#include <memory>

#include "runtime/transport/transport.h"
#include "trainer/job/job.h"
#include "trainer/job/launcher_environment.h"
#include "trainer/launch/agreement.h"

namespace lockstep::trainer {

/// The processes of a run: which rank lives here, and what carries its messages to the others.
struct Processes {
  int rank = 0, world = 1;
  std::shared_ptr<Transport> transport = {};  ///< null: one process, which simulates all ranks

  bool is_first() const { return rank == 0; }
};

/// Meets the other processes that the launcher started, through a c10d::TCPStore at MASTER_ADDR and MASTER_PORT, and
/// connects to each of them (docs/processes.md has the variables). Rank 0 serves the store, unless torchrun's agent
/// does.
///
/// Before that they compare `facts`, and meet only if these are the same. What is in the store is not trusted: it is
/// signed with the job's token. Throws BadInput for what is missing in the environment, Disagreement, TransportError
/// for who is missing at the meeting. Whoever waits for another process waits comm.init_timeout_seconds at most.
///
/// The first `ranks` of the launch are the run's (0: all); rank 0 tells the others when it is over.
Processes join_processes(const Launcher& launcher, const Environment& variable, const CommSection& comm,
                         const Facts& facts, int64_t ranks = 0);

/// For a process of a launch whose rank the mesh has no use for (parallelism.elastic): returns when the run is over.
/// Throws as join_processes(), and TransportError when the store is gone.
void wait_as_spare(const Launcher& launcher, const Environment& variable, const CommSection& comm);

/// Each process takes a GPU into use, its rank's modulo their number; the bytes of messages go over NCCL from then on,
/// their headers as before. Throws BadInput for what is missing, TransportError when NCCL fails.
void use_gpus(Processes& processes, const CommSection& comm);

/// To be called where an error ends this process, before its connections close: the others' errors say why.
void say_last(const Processes& processes, const std::exception& error);

/// From now on comm.train_timeout_seconds is the most. A first step takes long for reasons of its own (memory, kernels,
/// files that are read for the first time). To be called once it has ended on all ranks, as a collective tells: one
/// that is still in it would be waited for too briefly.
void use_train_timeout(const Processes& processes, const CommSection& comm);

}  // namespace lockstep::trainer
