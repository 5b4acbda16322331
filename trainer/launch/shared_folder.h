#pragma once
#include <string>

#include "runtime/tensor/mesh.h"

namespace lockstep::trainer {

/// Makes `folder`. Throws FileError on every rank unless all of them see what rank 0 writes there: each host would have
/// a part of a checkpoint on a disk of its own, and nobody a whole one. A collective of a whole mesh.
void require_shared_folder(const std::string& folder, const Mesh& mesh);

}  // namespace lockstep::trainer
