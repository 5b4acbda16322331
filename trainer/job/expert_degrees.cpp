#include "trainer/job/expert_degrees.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

/// Experts divided over the first axes that they may be, innermost first; over so much of the last.
struct Fold {
  int64_t degree = 1;
  std::vector<std::string_view> axes = {};
  int64_t shard_part = 1;

  Fold over(std::string_view axis, int64_t ranks) const {
    auto next = *this;
    next.degree *= ranks;
    next.axes.push_back(axis);
    return next;
  }
  Fold over_shards(int64_t part, int64_t all) const {
    auto next = over(part == all ? axis::kShard : axis::kShardInExperts, part);
    next.shard_part = part;
    return next;
  }
};

/// All there are: over none, over the first axis of size above 1, over the first two, and over parts of dp_shard.
std::vector<Fold> folds(const MeshDegrees& mesh) {
  std::vector<Fold> all{{}};
  if (mesh.etp == 1 && mesh.tp > 1) all.push_back(all.back().over(axis::kTensor, mesh.tp));
  if (mesh.cp > 1) all.push_back(all.back().over(axis::kContext, mesh.cp));
  const auto inner = all.back();
  for (int64_t part = 2; part <= mesh.dp_shard; ++part)
    if (mesh.dp_shard % part == 0) all.push_back(inner.over_shards(part, mesh.dp_shard));
  return all;
}

std::optional<Fold> fold_of_degree(const MeshDegrees& mesh) {
  for (auto& fold : folds(mesh))
    if (fold.degree == mesh.ep) return std::move(fold);
  return std::nullopt;
}

/// "1, 2 (tp), 4 (tp, 2 of dp_shard), 8 (tp, dp_shard)".
std::string choices_text(const MeshDegrees& mesh) {
  std::string text = "1";
  for (const auto& fold : folds(mesh)) {
    std::vector<std::string> parts;
    for (const auto& axis : fold.axes)
      parts.push_back(axis == axis::kShardInExperts ? fmt::format("{} of {}", fold.shard_part, axis::kShard)
                                                    : std::string(axis));
    if (!parts.empty()) text += fmt::format(", {} ({})", fold.degree, fmt::join(parts, ", "));
  }
  return text;
}

bool is_tensor_degree_offered(const MeshDegrees& mesh) { return mesh.etp == 1 || mesh.etp == mesh.tp; }

Fold required_fold(const MeshDegrees& mesh) {
  if (!is_tensor_degree_offered(mesh))
    fail<BadInput>(
        "mesh {}: parallelism.expert_tensor_parallel_degree {} must be 1 or parallelism.tensor_parallel_degree {}.",
        mesh.text(), mesh.etp, mesh.tp);
  auto fold = fold_of_degree(mesh);
  if (!fold)
    fail<BadInput>(
        "mesh {}: experts cannot be divided over {} of its ranks (parallelism.expert_parallel_degree): over tp (where "
        "expert_tensor_parallel_degree is 1), then cp, then dp_shard or a divisor of it. Choose one of {}.",
        mesh.text(), mesh.ep, choices_text(mesh));
  return *std::move(fold);
}

}  // namespace

std::vector<std::string_view> expert_axes(const MeshDegrees& mesh) { return required_fold(mesh).axes; }

int64_t shard_part_of_experts(const MeshDegrees& mesh) { return required_fold(mesh).shard_part; }

std::vector<int64_t> expert_degrees(const MeshDegrees& mesh) {
  std::vector<int64_t> degrees;
  for (const auto& fold : folds(mesh)) degrees.push_back(fold.degree);
  return degrees;
}

bool can_divide_experts(const MeshDegrees& mesh) { return is_tensor_degree_offered(mesh) && fold_of_degree(mesh); }

bool expert_sums_take_microbatches(const MeshDegrees& mesh) {
  return shard_part_of_experts(mesh) == 1 || std::has_single_bit(static_cast<uint64_t>(mesh.dp_shard));
}

bool cuts_matrices_of_experts(const MeshDegrees& mesh) { return mesh.tp > 1 && (mesh.ep == 1 || mesh.etp > 1); }

void require_experts_divide(const Job& job, const MeshDegrees& mesh) {
  static_cast<void>(required_fold(mesh));
  const auto& name = job.model.name;
  if (mesh.ep > 1 && (name == "gpt2" || name == "llama3" || name == "mlp"))
    fail<BadInput>(
        "parallelism.expert_parallel_degree {}: model.name \"{}\" has no experts; leave it out, or choose moe.",
        mesh.ep, name);
}

}  // namespace lockstep::trainer
