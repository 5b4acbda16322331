#pragma once
#include "consistency/coverage.h"
#include "runtime/tensor/mesh.h"
#include "trainer/verify/step_verifier.h"

/// Each of several processes compares what its rank has. These make of it what one process would have seen, on all of
/// them. Collectives of the mesh.
namespace lockstep::tool {

/// The largest differences, and all ops that were compared. Bits of a number that all ranks have count once for each.
void join(trainer::StepCheck& check, const Mesh& mesh);

/// Everything that was reached.
void join(Coverage& coverage, const Mesh& mesh);

}  // namespace lockstep::tool
