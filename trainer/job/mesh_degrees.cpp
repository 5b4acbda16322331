#include "trainer/job/mesh_degrees.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/mesh_text.h"
#include "core/suggest.h"
#include "trainer/job/expert_degrees.h"

namespace lockstep::trainer {
namespace {

const MeshDegrees::Axis& axis_named(std::string_view name, std::string_view mesh) {
  std::vector<std::string> names;
  for (const auto& axis : MeshDegrees::all()) {
    if (axis.name == name) return axis;
    names.emplace_back(axis.name);
  }
  const auto close = nearest(name, names);
  fail<BadInput>("mesh \"{}\": {} is not an axis.{} Axes are {}.", mesh, name,
                 close ? fmt::format(" Did you mean {}?", *close) : "", fmt::join(names, ", "));
}

std::vector<MeshAxis> cut(const MeshDegrees& mesh, std::span<const MeshDegrees::Axis> axes) {
  std::vector<MeshAxis> all;
  for (const auto& axis : axes)
    if (mesh.*axis.size != 1) all.push_back({std::string(axis.name), mesh.*axis.size});
  return all;
}

}  // namespace

std::span<const MeshDegrees::Axis> MeshDegrees::all() {
  using Section = ParallelismSection;
  static constexpr Axis kAxes[] = {
      {axis::kPipeline, "pipeline_parallel_degree", &MeshDegrees::pp, &Section::pipeline_parallel_degree},
      {axis::kReplicate, "data_parallel_replicate_degree", &MeshDegrees::dp_replicate,
       &Section::data_parallel_replicate_degree},
      {axis::kShard, "data_parallel_shard_degree", &MeshDegrees::dp_shard, &Section::data_parallel_shard_degree},
      {axis::kContext, "context_parallel_degree", &MeshDegrees::cp, &Section::context_parallel_degree},
      {axis::kTensor, "tensor_parallel_degree", &MeshDegrees::tp, &Section::tensor_parallel_degree},
      {axis::kExpert, "expert_parallel_degree", &MeshDegrees::ep, &Section::expert_parallel_degree},
      {axis::kExpertTensor, "expert_tensor_parallel_degree", &MeshDegrees::etp,
       &Section::expert_tensor_parallel_degree},
  };
  return kAxes;
}

int64_t MeshDegrees::ranks() const {
  int64_t product = 1;
  for (const auto& axis : axes())
    if (__builtin_mul_overflow(product, this->*axis.size, &product)) return std::numeric_limits<int64_t>::max();
  return product;
}

std::string MeshDegrees::text() const { return to_text(cut(*this, all())); }

std::vector<MeshAxis> mesh_axes(const MeshDegrees& degrees) {
  auto axes = cut(degrees, MeshDegrees::axes());
  const int64_t part = shard_part_of_experts(degrees);
  if (part == 1 || part == degrees.dp_shard) return axes;
  const auto shard = std::ranges::find(axes, axis::kShard, &MeshAxis::name);
  shard->size /= part;
  axes.insert(shard + 1, {axis::kShardInExperts, part});
  return axes;
}

MeshDegrees mesh_of(const Job& job) {
  MeshDegrees degrees;
  for (const auto& axis : MeshDegrees::all()) {
    degrees.*axis.size = job.parallelism.*axis.degree;
    LOCKSTEP_CHECK(degrees.*axis.size >= 1, "parallelism.{} is not resolved", axis.key);
  }
  return degrees;
}

void set_mesh(Job& job, const MeshDegrees& mesh) {
  for (const auto& axis : MeshDegrees::all()) job.parallelism.*axis.degree = mesh.*axis.size;
}

std::optional<MeshDegrees> largest_mesh(const MeshDegrees& mesh, int64_t global_batch_size, int64_t ranks) {
  const auto size = [](const MeshDegrees& degrees) { return std::pair(degrees.ranks(), degrees.dp_shard); };
  std::optional<MeshDegrees> best;
  auto tried = mesh;
  for (tried.dp_replicate = 1; tried.dp_replicate <= mesh.dp_replicate; ++tried.dp_replicate)
    for (tried.dp_shard = 1; tried.dp_shard <= mesh.dp_shard && tried.ranks() <= ranks; ++tried.dp_shard)
      if (global_batch_size % tried.data_parallel() == 0 && can_divide_experts(tried) &&
          (!best || size(tried) > size(*best)))
        best = tried;
  return best;
}

MeshDegrees parse_mesh(std::string_view text) {
  if (text.find_first_not_of(" \t\n") == text.npos)
    fail<BadInput>("a mesh is empty; expected axis=size pairs such as \"dp_shard=2,tp=2\".");
  MeshDegrees degrees;
  for (const auto& axis : parse_mesh_axes(text)) degrees.*axis_named(axis.name, text).size = axis.size;
  return degrees;
}

std::vector<MeshDegrees> parse_meshes(std::string_view text) {
  std::vector<MeshDegrees> meshes;
  for (const auto part : split_mesh_list(text)) meshes.push_back(parse_mesh(part));
  return meshes;
}

}  // namespace lockstep::trainer
