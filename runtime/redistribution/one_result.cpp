#include "runtime/redistribution/one_result.h"

#include "runtime/context/observer.h"

namespace lockstep {

bool has_one_result(World& world) { return !world.as_messages() && world.observers().empty(); }

}  // namespace lockstep
