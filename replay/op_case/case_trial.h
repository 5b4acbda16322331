#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <optional>

#include "consistency/blame.h"
#include "replay/store/op_case.h"
#include "runtime/context/world.h"
#include "runtime/planning/rule_set.h"

namespace lockstep::replay {

/// The World that a case is run in. Throws BadInput for what is none, or does not fit what the case holds.
World::Options options_of_case(const OpCase& one, std::shared_ptr<const RuleSet> rules);

/// The op, and its arguments on the case's mesh. BadInput as try_case().
c10::OperatorHandle op_of_case(const OpCase& one, World& world);
std::vector<c10::IValue> arguments_of_case(const OpCase& one, const c10::FunctionSchema& schema, const Mesh& mesh);

/// Runs the op of a case, or its move (move_case.h), in this process, all ranks of its mesh, and compares all of its
/// results with one device's: gives what differs. `rules`: the built-in ones if null. Throws BadInput for a case that
/// is not run: its op has no rule, none of its operands is sharded, a number stands for nothing, or what one device
/// gives is not there.
///
/// Whatever a file claims goes to LibTorch from here: run_case() calls it where there are neither files nor sockets.
std::optional<Blame> try_case(const OpCase& one, std::shared_ptr<const RuleSet> rules);

}  // namespace lockstep::replay
