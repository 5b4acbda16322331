#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/files/file_descriptor.h"
#include "tools/bench/peers/contender.h"
#include "trainer/launch/rendezvous.h"

namespace lockstep::bench {

/// A rank in each of several processes, which have met as those of `lockstep launch` do: this one is rank 0, the others
/// are its children and end with it. Each keeps to one core, as far as there are enough.
class RankProcesses {
 public:
  /// `make` runs in all of them; what it gives is done by all, as often. REQUIRES: this process has no other thread.
  /// Throws TransportError.
  RankProcesses(int count, const std::function<Contender::Work(const trainer::Processes&)>& make);

  /// Does it once, in all; returns rank 0's number.
  double operator()() const;

 private:
  std::vector<FileDescriptor> commands_;  ///< of the other ranks
  Contender::Work work_;
};

/// A contender whose work so many ranks do together.
std::shared_ptr<Contender> in_processes(int count,
                                        const std::function<Contender::Work(const trainer::Processes&)>& make);

}  // namespace lockstep::bench
