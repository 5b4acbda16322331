#pragma once
#include <string>
#include <string_view>

#include "replay/store/op_case.h"

/// A case of a run in many processes: each has the operands of its own ranks.
namespace lockstep::replay {

/// The tensors of a part, to be sent to the process that keeps the case.
std::string text_of_tensors(const OpCase& part);

/// Adds those that the case does not have. `text` comes from a process of the same run: it is believed.
void add_tensors(OpCase& one, std::string_view text);

}  // namespace lockstep::replay
