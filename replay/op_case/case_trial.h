#pragma once
#include <memory>
#include <optional>

#include "consistency/blame.h"
#include "replay/store/op_case.h"
#include "runtime/planning/rule_set.h"

namespace lockstep::replay {

/// Runs the op of a case, or its move (move_case.h), in this process, all ranks of its mesh, and compares all of its
/// results with one device's: gives what differs. `rules`: the built-in ones if null. Throws BadInput for a case that
/// is not run: its op has no rule, none of its operands is sharded, a number stands for nothing, or what one device
/// gives is not there.
///
/// Whatever a file claims goes to LibTorch from here: run_case() calls it where there are neither files nor sockets.
std::optional<Blame> try_case(const OpCase& one, std::shared_ptr<const RuleSet> rules);

}  // namespace lockstep::replay
