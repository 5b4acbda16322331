#pragma once
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/identity/facts.h"
#include "trainer/job/job.h"

/// What a run is: all that its bits depend on. Checkpoints belong to one.
namespace lockstep::trainer {

/// What decides the bits of a run: the keys of the job that have a part in them, the schedule's length, the data's
/// digest, and that of the weights it begins with. Not the mesh, the transport, outputs, checks, or how a batch is cut
/// into microbatches.
///
/// Of a resolved job whose data has this digest (data_digest()); empty: not known, it is left out.
Facts identity_facts(const Job& job, const std::string& data);

/// 32 hexadecimal digits: of the facts and, for a successor, of whom it follows.
std::string identity_text(const Facts& facts, const std::vector<RunOrigin::Parent>& parents = {});

struct ChangedFact {
  std::string name, before, now;
};

/// Facts that both know, and that differ.
std::vector<ChangedFact> changed_facts(const Facts& before, const Facts& now);

}  // namespace lockstep::trainer
