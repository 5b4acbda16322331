#pragma once
#include <memory>
#include <optional>

#include "consistency/op_trace.h"
#include "replay/store/op_case.h"
#include "runtime/planning/rule_set.h"

namespace lockstep::replay {

/// Runs the op again on its mesh, all ranks in this process, and compares its floating results with one device's: bits,
/// or in the float64 domain values to 1e-9. Gives what differs. `rules`: the built-in ones if null. Throws BadInput for
/// a case that cannot be run (it is another version's, or no op of this library).
std::optional<Blame> run_case(const OpCase& one, std::shared_ptr<const RuleSet> rules = {});

}  // namespace lockstep::replay
