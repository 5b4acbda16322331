#pragma once
#include "runtime/context/world.h"

namespace lockstep {

/// Whether all ranks live here and nobody looks at what each receives (observers may change it): then what members of a
/// group receive alike is made once for all of them.
bool has_one_result(World& world);

}  // namespace lockstep
