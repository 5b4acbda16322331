#include "trainer/job/expert_degrees.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

/// Experts divided over the first axes that they may be, innermost first.
struct Fold {
  int64_t degree = 1;
  std::vector<std::string_view> axes = {};
};

/// All there are: over none, over the first axis of size above 1, over the first two, ...
std::vector<Fold> folds(const MeshDegrees& mesh) {
  std::vector<Fold> all{{}};
  const auto add = [&](std::string_view axis, int64_t size) {
    if (size == 1) return;
    auto next = all.back();
    next.degree *= size;
    next.axes.push_back(axis);
    all.push_back(std::move(next));
  };
  if (mesh.etp == 1) add(axis::kTensor, mesh.tp);
  add(axis::kContext, mesh.cp);
  add(axis::kShard, mesh.dp_shard);
  return all;
}

std::optional<std::vector<std::string_view>> axes_of_degree(const MeshDegrees& mesh) {
  for (auto& fold : folds(mesh))
    if (fold.degree == mesh.ep) return std::move(fold.axes);
  return std::nullopt;
}

/// "1, 2 (tp), 4 (tp, cp)".
std::string choices_text(const MeshDegrees& mesh) {
  std::string text;
  for (const auto& fold : folds(mesh))
    text += fold.axes.empty() ? "1" : fmt::format(", {} ({})", fold.degree, fmt::join(fold.axes, ", "));
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
        "(where expert_tensor_parallel_degree is 1), then cp, then dp_shard: choose one of {}.",
        mesh.text(), mesh.ep, choices_text(mesh));
  return *std::move(axes);
}

std::vector<int64_t> expert_degrees(const MeshDegrees& mesh) {
  std::vector<int64_t> degrees;
  for (const auto& fold : folds(mesh)) degrees.push_back(fold.degree);
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
