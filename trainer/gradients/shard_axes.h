#pragma once
#include "runtime/tensor/mesh.h"

namespace lockstep::trainer {

/// Whether an axis of a mesh cuts parameters and samples as fully sharded data parallelism does: dp_shard, and the
/// inner part of it that experts are divided over.
bool is_shard_axis(const Mesh& mesh, int axis);

/// Whether it cuts samples: a shard axis, or dp_replicate.
bool is_data_parallel_axis(const Mesh& mesh, int axis);

}  // namespace lockstep::trainer
