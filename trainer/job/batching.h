#pragma once
#include <cstdint>

#include "core/batch_rows.h"
#include "trainer/job/job.h"
#include "trainer/job/mesh_degrees.h"

/// What a job means on a number of ranks: open degrees, global batch, microbatches.
namespace lockstep::trainer {

/// Where a run happens, as far as the job's resolution is concerned.
struct Launch {
  int64_t rank = 0;
  int64_t world = 1;
  bool simulated = true;  ///< all ranks live in this process and the mesh may have any size
};

/// The job with every -1 replaced: dp_shard by the rest of the launch's ranks (1 when simulated), the global batch by
/// local batch x data-parallel degree. The global batch belongs to the job from here on, whatever mesh it runs on.
/// parallelism.elastic: on a launch of another number of ranks the degrees are those of largest_mesh(), the batch stays
/// the job's own mesh's; ranks from the mesh's number on are spares. BadInput when the mesh does not have the launch's
/// number of ranks, or the batch does not divide.
Job resolve(Job job, const Launch& launch);

/// BadInput for what the processes of this launch do not offer on the job's mesh.
void require_offered(const Job& job, const Launch& launch);

/// One step's batch on a mesh: global = data_parallel x local x accumulation samples.
///
/// Each replica (dp_replicate) has a run of consecutive samples, its microbatches are runs of that, and the ranks of
/// dp_shard cut those: so every reduction joins neighbours, the one over replicas last, once a step. Under canonical
/// numerics what a rank has of a microbatch is a complete subtree of the sum over the step's samples.
struct Batching {
  int64_t global_batch_size = 0;
  int64_t data_parallel = 0;  ///< dp_replicate x dp_shard
  int64_t replicas = 0;       ///< dp_replicate
  int64_t local_batch_size = 0;
  int64_t accumulation_steps = 0;

  /// The global rows of a microbatch: `replicas` runs.
  BatchRows rows(int64_t microbatch) const;

  /// How many complete subtrees a replica's microbatch is kept as, until the step's tree joins them: one, or where
  /// dp_shard is no power of two (and neighbours may be no siblings) one for each of its ranks.
  int64_t nodes_per_microbatch() const;
};

/// Samples of a rank's microbatch, at most: a pipeline cuts a local batch into microbatches of its own.
int64_t largest_microbatch(const Job& job, const MeshDegrees& mesh);

/// The batching of a resolved job on `mesh`: the largest local batch that is not above the job's (of a pipeline: above
/// its microbatches' size, either) and divides evenly;
/// under canonical numerics all of a rank's samples or a power of two of them, which is at least 1. BadInput, with the
/// numbers, when the global batch does not divide over the mesh's data-parallel ranks, or where its microbatches would
/// change bits (expert_sums_take_microbatches()).
Batching derive_batching(const Job& job, const MeshDegrees& mesh);

}  // namespace lockstep::trainer
