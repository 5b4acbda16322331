#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/job/job.h"

/// What a run is: all that its bits depend on. Checkpoints belong to one.
namespace lockstep::trainer {

/// What decides the bits of a run, by name, in an order that never changes for one build: the keys of the job that have
/// a part in them, the schedule's length, the data's digest. Not the mesh, the transport, outputs, checks, or how a
/// batch is cut into microbatches.
using IdentityFacts = std::vector<std::pair<std::string, std::string>>;

/// Of a resolved job whose data has this digest (data_digest()); empty: not known, it is left out.
IdentityFacts identity_facts(const Job& job, const std::string& data);

/// 32 hexadecimal digits: of the facts and, for a successor, of whom it follows.
std::string identity_text(const IdentityFacts& facts, const std::vector<RunOrigin::Parent>& parents = {});

struct ChangedFact {
  std::string name, before, now;
};

/// Facts that both know, and that differ.
std::vector<ChangedFact> changed_facts(const IdentityFacts& before, const IdentityFacts& now);

}  // namespace lockstep::trainer
