#include "trainer/gradients/shard_axes.h"

#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {

bool is_shard_axis(const Mesh& mesh, int axis) {
  return axis == mesh.find_axis(axis::kShard) || axis == mesh.find_axis(axis::kShardInExperts);
}

bool is_data_parallel_axis(const Mesh& mesh, int axis) {
  return axis == mesh.find_axis(axis::kReplicate) || is_shard_axis(mesh, axis);
}

Layout update_layout(const Layout& parameter, c10::IntArrayRef sizes, bool replicas_share) {
  const int axis = parameter.mesh().find_axis(axis::kReplicate);
  if (!replicas_share || sizes.empty() || axis < 0) return parameter;
  int64_t ranks = parameter.mesh().axis_size(axis);
  if (ranks == 1 || !parameter[axis].is_replicate()) return parameter;
  for (const int cutter : parameter.cutters(0)) ranks *= parameter.mesh().axis_size(cutter);
  return parameter.with(axis, Placement::shard(dim_for_ranks(sizes, ranks)));
}

}  // namespace lockstep::trainer
