#include "trainer/gradients/shard_axes.h"

#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {

bool is_shard_axis(const Mesh& mesh, int axis) {
  return axis == mesh.find_axis(axis::kShard) || axis == mesh.find_axis(axis::kShardInExperts);
}

bool is_data_parallel_axis(const Mesh& mesh, int axis) {
  return axis == mesh.find_axis(axis::kReplicate) || is_shard_axis(mesh, axis);
}

}  // namespace lockstep::trainer
