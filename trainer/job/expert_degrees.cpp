#include "trainer/job/expert_degrees.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

struct Folded {
  std::string_view name;
  int64_t size;
};

/// Those of size above 1 that may divide experts, innermost first.
std::vector<Folded> foldable(const MeshDegrees& mesh) {
  std::vector<Folded> axes;
  if (mesh.etp == 1 && mesh.tp > 1) axes.push_back({axis::kTensor, mesh.tp});
  if (mesh.cp > 1) axes.push_back({axis::kContext, mesh.cp});
  if (mesh.dp_shard > 1) axes.push_back({axis::kShard, mesh.dp_shard});
  return axes;
}

std::optional<std::vector<std::string_view>> axes_of_degree(const MeshDegrees& mesh) {
  std::vector<std::string_view> names;
  int64_t degree = 1;
  for (const auto& axis : foldable(mesh)) {
    if (degree == mesh.ep) break;
    degree *= axis.size;
    names.push_back(axis.name);
  }
  return degree == mesh.ep ? std::optional(names) : std::nullopt;
}

/// "1, 2 (tp), 4 (tp, cp)".
std::string choices_text(const MeshDegrees& mesh) {
  std::string text = "1";
  std::vector<std::string_view> names;
  int64_t degree = 1;
  for (const auto& axis : foldable(mesh)) {
    degree *= axis.size;
    names.push_back(axis.name);
    text += fmt::format(", {} ({})", degree, fmt::join(names, ", "));
  }
  return text;
}

bool is_tensor_degree_offered(const MeshDegrees& mesh) { return mesh.etp == 1 || mesh.etp == mesh.tp; }

}  // namespace

std::vector<std::string_view> expert_axes(const MeshDegrees& mesh) {
  if (!is_tensor_degree_offered(mesh))
    fail<BadInput>(
        "mesh {}: parallelism.expert_tensor_parallel_degree {} must be 1 or parallelism.tensor_parallel_degree {}.",
        mesh.text(), mesh.etp, mesh.tp);
  auto axes = axes_of_degree(mesh);
  if (!axes)
    fail<BadInput>(
        "mesh {}: parallelism.expert_parallel_degree {} is no product of whole axes; experts are divided over tp "
        "(where "
        "expert_tensor_parallel_degree is 1), then cp, then dp_shard: choose one of {}.",
        mesh.text(), mesh.ep, choices_text(mesh));
  return *std::move(axes);
}

std::vector<int64_t> expert_degrees(const MeshDegrees& mesh) {
  std::vector<int64_t> degrees{1};
  for (const auto& axis : foldable(mesh)) degrees.push_back(degrees.back() * axis.size);
  return degrees;
}

bool can_divide_experts(const MeshDegrees& mesh) { return is_tensor_degree_offered(mesh) && axes_of_degree(mesh); }

bool cuts_matrices_of_experts(const MeshDegrees& mesh) { return mesh.tp > 1 && (mesh.ep == 1 || mesh.etp > 1); }

void require_experts_divide(const Job& job, const MeshDegrees& mesh) {
  static_cast<void>(expert_axes(mesh));
  const auto& name = job.model.name;
  if (mesh.ep > 1 && (name == "gpt2" || name == "llama3" || name == "mlp"))
    fail<BadInput>(
        "parallelism.expert_parallel_degree {}: model.name \"{}\" has no experts; leave it out, or choose moe.",
        mesh.ep, name);
}

}  // namespace lockstep::trainer
