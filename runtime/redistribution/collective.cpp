#include "runtime/redistribution/collective.h"

#include <ATen/Functions.h>

#include "runtime/plain/lazy_copy.h"
#include "runtime/redistribution/collective_parts.h"
#include "runtime/redistribution/one_result.h"

namespace lockstep {

CollectiveKind kind_of(const Move& move) {
  const auto &from = move.before->layout[move.axis], &to = move.after->layout[move.axis];
  if (from.is_shard()) return to.is_replicate() ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll;
  return to.is_shard() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
}

std::unique_ptr<Collective> make_collective(const Move& move, Shards shards) {
  switch (kind_of(move)) {
    case CollectiveKind::kAllGather:
      return make_all_gather(move, std::move(shards));
    case CollectiveKind::kAllToAll:
      return make_all_to_all(move, std::move(shards));
    case CollectiveKind::kReduceScatter:
      return make_reduce_scatter(move, std::move(shards));
    case CollectiveKind::kTransfer:  // no move of a layout
    case CollectiveKind::kAllReduce:
      break;
  }
  return make_all_reduce(move, std::move(shards));
}

Collective::Collective(const Move& move, Shards shards)
    : move_(move), shards_(std::move(shards)), has_one_result_(lockstep::has_one_result(mesh().world())) {
  const auto nodes = static_cast<size_t>(shard_dim(*move.before, 0));
  for (const auto& shard : shards_) body_sizes_.push_back(shard.sizes().slice(nodes).vec());
}

int Collective::member_rank(size_t index, size_t member) const {
  return mesh().member(mesh().local_ranks()[index], move_.axis, static_cast<int64_t>(member));
}

Range Collective::member_cut(const TensorSpec& spec, size_t index, size_t member, int dim) const {
  return spec.layout.cut(member_rank(index, member), dim, spec.sizes[static_cast<size_t>(dim)]);
}

std::vector<int64_t> Collective::piece_sizes(size_t index, size_t member, int dim, int64_t length) const {
  auto sizes = with_nodes(*move_.before, member_rank(index, member), body_sizes_[index]);
  sizes[static_cast<size_t>(shard_dim(*move_.before, dim))] = length;
  return sizes;
}

Pieces Collective::to_everyone(bool alike) const {
  Pieces pieces;
  for (const auto& shard : shards_) pieces.emplace_back(alike ? 1 : members(), shard);
  return pieces;
}

Pieces Collective::cut_for_members() const {
  Pieces pieces(shards_.size());
  const int dim = to().dim, cut_dim = shard_dim(*move_.before, dim);
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto held = move_.before->cut(i, dim);
    for (size_t m = 0; m < members(); ++m)
      pieces[i].push_back(rows(shards_[i], cut_dim, held, member_cut(*move_.after, i, m, dim)));
  }
  return pieces;
}

int shard_dim(const TensorSpec& spec, int dim) {
  const int nodes = spec.layout.ordered_sum() ? 1 : 0, cells = spec.packing.cells;
  return nodes + (cells == 0 ? dim : dim < cells ? 0 : dim - cells + 1);
}

std::vector<int64_t> with_nodes(const TensorSpec& spec, int rank, std::vector<int64_t> body) {
  if (spec.layout.ordered_sum()) body.insert(body.begin(), node_count(spec.layout, rank));
  return body;
}

at::Tensor rows(const at::Tensor& shard, int dim, const Range& held, const Range& wanted) {
  const auto overlap = held.overlap(wanted);
  return shard.narrow(dim, overlap.length ? overlap.start - held.start : 0, overlap.length);
}

Shards concatenate(const Pieces& received, int dim) {
  Shards result;
  for (const auto& pieces : received) result.push_back(at::cat(pieces, dim));
  return result;
}

int first_of_group(const Move& move, size_t index) {
  const auto& mesh = move.before->layout.mesh();
  return mesh.local_index(mesh.member(mesh.local_ranks()[index], move.axis, 0));
}

Shards once_per_group(const Move& move, bool has_one_result, const std::function<at::Tensor(size_t)>& make) {
  const size_t count = move.before->layout.mesh().local_count();
  const auto maker_of = [&](size_t i) { return has_one_result ? static_cast<size_t>(first_of_group(move, i)) : i; };
  Shards result(count);
  for (size_t i = 0; i < count; ++i)
    if (maker_of(i) == i) result[i] = make(i);
  for (size_t i = 0; i < count; ++i)
    if (maker_of(i) != i) result[i] = lazy_copy(result[maker_of(i)]);
  return result;
}

}  // namespace lockstep
