#include "trainer/verify/blame_reference.h"

#include <fmt/format.h>

#include "trainer/job/batching.h"

namespace lockstep::trainer {

Job with_microbatches_of(Job job, const MeshDegrees& mesh, const MeshDegrees& other) {
  job.training.local_batch_size =
      job.training.global_batch_size / derive_batching(job, mesh).accumulation_steps / other.data_parallel();
  return job;
}

MeshDegrees blame_mesh(const Job& job, const MeshDegrees& mesh) {
  const auto batching = derive_batching(job, mesh);
  MeshDegrees result;
  if (batching.accumulation_steps > 1) result.dp_replicate = mesh.dp_replicate;
  if (batching.nodes_per_microbatch() > 1) result.dp_shard = mesh.dp_shard;
  return result;
}

std::string limits_of_blame(const MeshDegrees& reference) {
  if (reference.ranks() == 1) return "";
  return fmt::format("the reference of this report has the same {}: what its ranks do wrong alike cannot be told",
                     reference.text());
}

}  // namespace lockstep::trainer
