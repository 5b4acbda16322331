#include "runtime/redistribution/local_move.h"

#include "runtime/redistribution/collective_parts.h"

namespace lockstep {
namespace {

bool is_alone(const Move& move) { return move.before->layout.mesh().axis_size(move.axis) == 1; }

Shards copies(const Shards& shards) {
  Shards result;
  for (const auto& shard : shards) result.push_back(shard.clone(at::MemoryFormat::Contiguous));
  return result;
}

/// An ordered sum of which each rank has all parts.
Shards join(const Move& move, const Shards& shards) {
  Pieces parts;
  for (const auto& shard : shards) parts.emplace_back(1, shard);
  return combine(move, parts);
}

/// Replicate -> Shard.
Shards slice(const Move& move, const Shards& shards) {
  const int dim = move.after->layout[move.axis].dim, cut_dim = shard_dim(*move.before, dim);
  Shards result;
  for (size_t i = 0; i < shards.size(); ++i)
    result.push_back(rows(shards[i], cut_dim, move.before->cut(i, dim), move.after->cut(i, dim))
                         .clone(at::MemoryFormat::Contiguous));
  return result;
}

/// Replicate -> Partial: the first rank of the axis keeps the value.
Shards split_value(const Move& move, const Shards& shards) {
  const auto& mesh = move.before->layout.mesh();
  auto result = copies(shards);
  for (size_t i = 0; i < result.size(); ++i)
    if (mesh.coordinate(mesh.local_ranks()[i], move.axis) != 0)
      fill_with_neutral(result[i], move.after->layout[move.axis].reduction);
  return result;
}

}  // namespace

bool is_local(const Move& move) { return move.before->layout[move.axis].is_replicate() || is_alone(move); }

Shards run_locally(const Move& move, const Shards& shards) {
  if (move.before->layout[move.axis].is_ordered()) return join(move, shards);
  if (is_alone(move)) return copies(shards);
  return move.after->layout[move.axis].is_shard() ? slice(move, shards) : split_value(move, shards);
}

}  // namespace lockstep
