#pragma once
#include <memory>

#include "runtime/planning/rule_set.h"
#include "trainer/mutation/mutant.h"

namespace lockstep::trainer {

/// Says when a call is to go wrong.
class FaultyCalls {
 public:
  virtual ~FaultyCalls() = default;
  virtual bool is_due(const OpId& id, int rank) = 0;
  virtual void note_change() = 0;
};

/// The rules with the row of the mutant's op run on ranks with another random stream, or with another number among its
/// arguments. One fault at a time on a thread. All are borrowed.
std::shared_ptr<const RuleSet> with_other_calls(const RuleSet& shipped, const Mutant& mutant, FaultyCalls& faulty);

}  // namespace lockstep::trainer
