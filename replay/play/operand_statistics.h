#pragma once
#include <string>

#include "runtime/context/observer.h"

namespace lockstep::replay {

/// A line for each tensor that the op read and did not write, of local rank `index`: layout, smallest and largest
/// element, mean, how many are not finite.
std::string operand_statistics(const OpEvent& event, size_t index);

}  // namespace lockstep::replay
