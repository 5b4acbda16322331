#pragma once
#include "runtime/tensor/mesh.h"
#include "tools/lockstep/reports/verify/mesh_verdict.h"

namespace lockstep::tool {

/// Each of several processes compares what its rank has. Makes of that what one process would have seen, on all of
/// them: the largest differences, all ops that were compared, everything that was reached. A collective of the mesh.
void join(MeshVerdict& verdict, const Mesh& mesh);

}  // namespace lockstep::tool
