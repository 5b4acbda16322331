#include "runtime/redistribution/collective.h"

#include <ATen/Functions.h>

#include <numeric>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/world.h"

namespace lockstep {
namespace {

/// The layout's cut of every group member, for local rank `index`: who holds which rows of `dim`.
Range member_cut(const TensorSpec& spec, int axis, size_t index, size_t member, int dim) {
  const auto& mesh = spec.layout.mesh();
  const int rank = mesh.member(mesh.local_ranks()[index], axis, static_cast<int64_t>(member));
  return spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]);
}

/// Rows `wanted` (global indices) of a shard that holds the rows `held`.
at::Tensor rows(const at::Tensor& shard, int dim, const Range& held, const Range& wanted) {
  const auto overlap = held.overlap(wanted);
  return shard.narrow(dim, overlap.length ? overlap.start - held.start : 0, overlap.length);
}

Shards copies(const Shards& shards) {
  Shards result;
  for (const auto& shard : shards) result.push_back(shard.clone(at::MemoryFormat::Contiguous));
  return result;
}

Shards concatenate(const Pieces& received, int dim) {
  Shards result;
  for (const auto& pieces : received) result.push_back(at::cat(pieces, dim));
  return result;
}

/// The dimension of nodes in front of an ordered Partial's shard on `rank`.
std::vector<int64_t> node_dim(const TensorSpec& spec, int rank) {
  if (!spec.layout.ordered_sum()) return {};
  return {node_count(spec.layout, rank)};
}

std::vector<int64_t> joined(std::vector<int64_t> front, const std::vector<int64_t>& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

}  // namespace

Collective::Collective(const Move& move, Shards shards)
    : move_(move),
      shards_(std::move(shards)),
      mesh_(move.before->layout.mesh()),
      from_(move.before->layout[move.axis]),
      to_(move.after->layout[move.axis]),
      lead_(move.before->layout.ordered_sum() ? 1 : 0),
      // Where all ranks live here nothing is gained by sending chunks.
      sends_whole_(!mesh_.world().as_messages()) {
  for (const auto& shard : shards_) body_sizes_.push_back(shard.sizes().slice(static_cast<size_t>(lead_)).vec());
}

size_t Collective::member_of(size_t index) const {
  return static_cast<size_t>(mesh_.coordinate(mesh_.local_ranks()[index], move_.axis));
}

int Collective::member_rank(size_t index, size_t member) const {
  return mesh_.member(mesh_.local_ranks()[index], move_.axis, static_cast<int64_t>(member));
}

bool Collective::is_local() const { return from_.is_replicate() || mesh_.axis_size(move_.axis) == 1; }

/// On an axis of one rank every placement is the same bytes, but a new tensor, as any other move gives; only the nodes
/// of an ordered Partial are still to be joined.
Shards Collective::run_locally() const {
  if (from_.is_ordered()) return combine(to_everyone());
  if (mesh_.axis_size(move_.axis) == 1) return copies(shards_);
  return to_.is_shard() ? slice() : split_value();
}

CollectiveKind Collective::kind() const {
  if (from_.is_shard()) return to_.is_replicate() ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll;
  return to_.is_shard() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
}

int Collective::rounds() const { return kind() == CollectiveKind::kAllReduce && !sends_whole_ ? 2 : 1; }

Pieces Collective::pieces(int round) const {
  switch (kind()) {
    case CollectiveKind::kAllReduce:
      return sends_whole_ || round == 1 ? to_everyone() : flat_chunks();
    case CollectiveKind::kAllGather:
      return to_everyone();
    default:
      return cut_for_members();
  }
}

std::vector<int64_t> Collective::received_sizes(int round, size_t index, size_t member) const {
  const int rank = mesh_.local_ranks()[index], sender = member_rank(index, member);
  switch (kind()) {
    case CollectiveKind::kAllReduce:
      if (sends_whole_) return joined(node_dim(*move_.before, sender), body_sizes_[index]);
      if (round == 0) return joined(node_dim(*move_.before, sender), {flat_chunk(index, member_of(index)).length});
      return joined(node_dim(*move_.after, rank), {flat_chunk(index, member).length});
    case CollectiveKind::kAllGather:
      return piece_sizes(index, member, from_.dim,
                         member_cut(*move_.before, move_.axis, index, member, from_.dim).length);
    case CollectiveKind::kReduceScatter:
      return piece_sizes(index, member, to_.dim, move_.after->cut(index, to_.dim).length);
    case CollectiveKind::kAllToAll:
      break;
  }
  const auto held = member_cut(*move_.before, move_.axis, index, member, from_.dim);
  const auto mine = move_.after->cut(index, to_.dim);
  if (from_.dim == to_.dim) return piece_sizes(index, member, to_.dim, held.overlap(mine).length);
  auto sizes = piece_sizes(index, member, to_.dim, mine.length);
  sizes[static_cast<size_t>(before_dim(from_.dim))] = held.length;
  return sizes;
}

bool Collective::gathers(int round) const {
  return kind() == CollectiveKind::kAllGather || (kind() == CollectiveKind::kAllReduce && round == 1);
}

int Collective::gathered_dim(size_t index, int round) const {
  if (kind() == CollectiveKind::kAllGather) return before_dim(from_.dim);
  return static_cast<int>(received_sizes(round, index, 0).size()) - 1;
}

/// Observers may put another tensor in the place of what arrived.
Pieces Collective::destinations(int round) {
  auto& world = mesh_.world();
  if (!gathers(round) || world.meta() || !world.observers().empty()) return {};
  for (size_t i = 0; i < shards_.size(); ++i)
    if (!make_destinations(i, round)) {
      destinations_.clear();
      gathered_.clear();
      break;
    }
  return destinations_;
}

bool Collective::make_destinations(size_t index, int round) {
  const auto dim = static_cast<size_t>(gathered_dim(index, round));
  std::vector<int64_t> lengths;
  for (size_t m = 0; m < members(); ++m) lengths.push_back(received_sizes(round, index, m)[dim]);
  auto sizes = received_sizes(round, index, 0);
  if (c10::multiply_integers(sizes.begin(), sizes.begin() + static_cast<int64_t>(dim)) != 1) return false;
  sizes[dim] = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  gathered_.push_back(at::empty(sizes, shards_[index].options()));
  const auto pieces = gathered_.back().split_with_sizes(lengths, static_cast<int64_t>(dim));
  destinations_.push_back(pieces);
  return true;
}

/// Everything that arrived, in the order of the group.
Shards Collective::gathered(const Pieces& received, int round) {
  destinations_.clear();
  return gathered_.empty() ? concatenate(received, gathered_dim(0, round)) : std::move(gathered_);
}

size_t Collective::whole_bytes() const {
  return static_cast<size_t>(c10::multiply_integers(move_.before->sizes)) * shards_[0].element_size();
}

bool Collective::whole_is_as_cheap() const { return move_.before->nodes_per_rank <= move_.after->nodes_per_rank; }

void Collective::absorb(int round, const Pieces& received) {
  switch (kind()) {
    case CollectiveKind::kAllGather:
      shards_ = gathered(received, round);
      return;
    case CollectiveKind::kAllToAll:
      shards_ = concatenate(received, before_dim(from_.dim));
      return;
    case CollectiveKind::kReduceScatter:
      shards_ = combine(received);
      return;
    case CollectiveKind::kAllReduce:
      break;
  }
  if (sends_whole_) {
    shards_ = combine_once_per_group(received);
  } else if (round == 0) {
    shards_ = combine(received);
  } else {
    shards_ = gathered(received, round);
    for (size_t i = 0; i < shards_.size(); ++i)
      shards_[i] = shards_[i].view(joined(node_dim(*move_.after, mesh_.local_ranks()[i]), body_sizes_[i]));
  }
}

Range Collective::flat_chunk(size_t index, size_t member) const {
  const int64_t total = c10::multiply_integers(body_sizes_[index]), ranks = mesh_.axis_size(move_.axis);
  const int64_t chunk = (total + ranks - 1) / ranks, start = std::min(static_cast<int64_t>(member) * chunk, total);
  return {start, std::min(chunk, total - start)};
}

/// Of what `member` sends: the shard's sizes but for one dimension.
std::vector<int64_t> Collective::piece_sizes(size_t index, size_t member, int dim, int64_t length) const {
  auto sizes = joined(node_dim(*move_.before, member_rank(index, member)), body_sizes_[index]);
  sizes[static_cast<size_t>(before_dim(dim))] = length;
  return sizes;
}

Pieces Collective::cut_for_members() const {
  Pieces pieces(shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto held = move_.before->cut(i, to_.dim);
    for (size_t m = 0; m < members(); ++m)
      pieces[i].push_back(
          rows(shards_[i], before_dim(to_.dim), held, member_cut(*move_.after, move_.axis, i, m, to_.dim)));
  }
  return pieces;
}

Pieces Collective::flat_chunks() const {
  Pieces pieces(shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto flat = shards_[i].reshape(
        joined(node_dim(*move_.before, mesh_.local_ranks()[i]), {c10::multiply_integers(body_sizes_[i])}));
    for (size_t m = 0; m < members(); ++m) {
      const auto chunk = flat_chunk(i, m);
      pieces[i].push_back(flat.narrow(-1, chunk.start, chunk.length));
    }
  }
  return pieces;
}

Pieces Collective::to_everyone() const {
  Pieces pieces;
  for (const auto& shard : shards_) pieces.emplace_back(members(), shard);
  return pieces;
}

Shards Collective::slice() const {
  Shards result;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto before = move_.before->cut(i, to_.dim), after = move_.after->cut(i, to_.dim);
    result.push_back(rows(shards_[i], before_dim(to_.dim), before, after).clone(at::MemoryFormat::Contiguous));
  }
  return result;
}

/// Replicate -> Partial: the first rank of the axis keeps the value.
Shards Collective::split_value() const {
  auto result = copies(shards_);
  for (size_t i = 0; i < result.size(); ++i)
    if (member_of(i) != 0) fill_with_neutral(result[i], to_.reduction);
  return result;
}

}  // namespace lockstep
