#pragma once
#include <string>

#include "trainer/job/job.h"
#include "trainer/job/mesh_degrees.h"

/// What ops are compared with, one by one, to find what is to blame.
namespace lockstep::trainer {

/// The job with the microbatches of `mesh` on `other`: an op's id holds its microbatch, and only equal ids compare.
Job with_microbatches_of(Job job, const MeshDegrees& mesh, const MeshDegrees& other);

/// One device. Where replicas have microbatches of their own, or ranks parts of one that are no run of a tree, a
/// microbatch of one device holds other samples: then as many replicas and shards.
MeshDegrees blame_mesh(const Job& job, const MeshDegrees& mesh);

/// What a report that was found beside it cannot tell; empty beside one device.
std::string limits_of_blame(const MeshDegrees& reference);

}  // namespace lockstep::trainer
