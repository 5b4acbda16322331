#pragma once
#include <memory>
#include <optional>

#include "consistency/blame.h"
#include "replay/store/op_case.h"
#include "runtime/planning/rule_set.h"

namespace lockstep::replay {

/// Runs the op again on its mesh, all ranks in one process, and compares its results with one device's: bits,
/// or in the float64 domain values to 1e-9. Gives what differs. `rules`: the built-in ones if null.
///
/// A case may come from anybody: the process is a child that has neither files nor sockets, on one thread
/// (reader_process.h, limits_for_op()). Throws BadInput for a case that cannot be run (try_case() has the reasons), and
/// FileError where running it crashed, took too long or took too much memory.
std::optional<Blame> run_case(const OpCase& one, std::shared_ptr<const RuleSet> rules = {});

}  // namespace lockstep::replay
