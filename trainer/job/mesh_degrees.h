#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mesh_text.h"
#include "trainer/job/job.h"

/// The size of every mesh axis of a job, as plain numbers; runtime/tensor/mesh.h holds the mesh itself.
namespace lockstep::trainer {

/// Names of mesh axes.
namespace axis {
inline constexpr char kPipeline[] = "pp";
inline constexpr char kReplicate[] = "dp_replicate";
inline constexpr char kShard[] = "dp_shard";
inline constexpr char kContext[] = "cp";
inline constexpr char kTensor[] = "tp";
/// The inner part of dp_shard, where experts are divided over that part alone.
inline constexpr char kShardInExperts[] = "dp_shard_in_ep";
// Not of the mesh: how experts are divided over its axes (trainer/job/expert_degrees.h).
inline constexpr char kExpert[] = "ep";
inline constexpr char kExpertTensor[] = "etp";
}  // namespace axis

struct MeshDegrees {
  int64_t pp = 1;
  int64_t dp_replicate = 1;
  int64_t dp_shard = 1;
  int64_t cp = 1;
  int64_t tp = 1;
  int64_t ep = 1, etp = 1;  ///< of experts, over the same ranks

  struct Axis {
    std::string_view name;  ///< "dp_shard"
    std::string_view key;   ///< "data_parallel_shard_degree"
    int64_t MeshDegrees::*size;
    int64_t ParallelismSection::*degree;
  };
  /// All axes, outermost first: the order of the mesh.
  static std::span<const Axis> axes() { return all().first(5); }
  /// The same, and those of experts, which are degrees on these axes.
  static std::span<const Axis> all();

  /// The number of ranks; the largest int64_t if it does not fit.
  int64_t ranks() const;
  /// Data-parallel degree: over how many groups of ranks a batch is divided.
  int64_t data_parallel() const { return dp_replicate * dp_shard; }
  /// "dp_shard=2,tp=2,ep=2"; "one device" when every axis is 1.
  std::string text() const;

  friend bool operator==(const MeshDegrees&, const MeshDegrees&) = default;
};

/// The axes of the mesh, outermost first, of size above 1: dp_shard in two where experts are divided over a part of it.
/// Throws as expert_axes().
std::vector<MeshAxis> mesh_axes(const MeshDegrees& degrees);

/// The mesh of a resolved job.
MeshDegrees mesh_of(const Job& job);
/// Makes it that of a job.
void set_mesh(Job& job, const MeshDegrees& mesh);

/// The largest mesh with at most `ranks` ranks that a global batch divides over, where the data-parallel degrees may be
/// smaller than those of `mesh`; pp, cp, tp and the degrees of experts stay. Of two that are as large the one with the
/// larger dp_shard, which needs less memory on each rank. None where the ranks are not enough for any.
std::optional<MeshDegrees> largest_mesh(const MeshDegrees& mesh, int64_t global_batch_size, int64_t ranks);

/// "dp_shard=2,tp=2,ep=2" -> degrees; axes in any order, absent axes are 1, "one device" is all 1. BadInput otherwise.
MeshDegrees parse_mesh(std::string_view text);

/// Several meshes separated by ';', at least one.
std::vector<MeshDegrees> parse_meshes(std::string_view text);

}  // namespace lockstep::trainer
