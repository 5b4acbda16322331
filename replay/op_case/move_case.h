#pragma once
#include <ATen/core/ivalue.h>

#include <optional>

#include "consistency/blame.h"
#include "consistency/moved_value.h"
#include "replay/store/op_case.h"

/// The case of a move between two layouts, which no op of LibTorch's stands for: the op is "move", its arguments are
/// the tensor before it and the layout after it (FORMAT.md). Nothing is expected: a move has to leave the values as
/// they are.
namespace lockstep::replay {

bool is_move(const OpCase& one);

/// `id`: OpId::text() of what asked for it. Where the ranks live in many processes, the part of this one. None if its
/// mesh is part of another.
std::optional<OpCase> case_of_move(const MovedValue& moved, const std::string& id, const std::string& finding);

/// What moves, and the text of where. Throws BadInput for anything else.
std::vector<c10::IValue> arguments_of_move(const OpCase& one, const Mesh& mesh);

/// Moves it again on `mesh`, and compares as verification does: gives what differs. Throws BadInput for anything else
/// than a sharded tensor and another layout, and for a tensor without elements.
std::optional<Blame> try_move(const OpCase& one, const Mesh& mesh);

}  // namespace lockstep::replay
