// Carrying out the moves of a redistribution on shards.
#include "runtime/redistribute.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/collective.h"
#include "runtime/observer.h"
#include "runtime/sharded_tensor.h"
#include "runtime/world.h"

namespace lockstep {
namespace {

/// The layout's cut of every group member, for local rank `index`: who holds which rows of `dim`.
std::vector<Range> member_cuts(const TensorSpec& spec, int axis, size_t index, int dim) {
  const auto& mesh = spec.layout.mesh();
  std::vector<Range> cuts;
  for (const int member : mesh.group(mesh.world().local_ranks()[index], axis))
    cuts.push_back(spec.layout.cut(member, dim, spec.sizes[static_cast<size_t>(dim)]));
  return cuts;
}

Range intersect(const Range& a, const Range& b) {
  const int64_t start = std::max(a.start, b.start);
  const int64_t end = std::min(a.start + a.length, b.start + b.length);
  return {start, std::max<int64_t>(end - start, 0)};
}

/// Rows `wanted` (global indices) of a shard that holds the rows `held`.
at::Tensor rows(const at::Tensor& shard, int dim, const Range& held, const Range& wanted) {
  const auto overlap = intersect(held, wanted);
  return shard.narrow(dim, overlap.length ? overlap.start - held.start : 0, overlap.length);
}

/// One move on all local ranks.
class Mover {
 public:
  Mover(const Move& move, const Shards& shards, c10::ScalarType dtype)
      : move_(move),
        shards_(shards),
        mesh_(move.before->layout.mesh()),
        from_(move.before->layout[move.axis]),
        to_(move.after->layout[move.axis]),
        dtype_(dtype) {}

  Shards run() {
    if (mesh_.axis_size(move_.axis) == 1) return alone();
    if (from_.is_replicate()) return to_.is_shard() ? slice() : split_value();
    if (from_.is_shard()) return to_.is_replicate() ? all_gather() : all_to_all();
    return to_.is_shard() ? reduce_scatter() : all_reduce();
  }

 private:
  size_t count() const { return shards_.size(); }
  size_t members() const { return static_cast<size_t>(mesh_.axis_size(move_.axis)); }
  size_t place(size_t i) const {
    return static_cast<size_t>(mesh_.coordinate(mesh_.world().local_ranks()[i], move_.axis));
  }
  std::vector<int64_t> sizes_with(size_t i, int dim, int64_t length) const {
    auto sizes = shards_[i].sizes().vec();
    sizes[static_cast<size_t>(dim)] = length;
    return sizes;
  }
  Pieces send(CollectiveKind kind, Pieces pieces, std::function<std::vector<int64_t>(size_t, size_t)> sizes) const {
    return exchange({mesh_, move_.axis, kind, dtype_, std::move(pieces), std::move(sizes)});
  }

  /// An axis of one rank: every placement is the same bytes, but a new tensor, as any other move gives.
  Shards alone() const {
    Shards result;
    for (const auto& shard : shards_) result.push_back(shard.clone(at::MemoryFormat::Contiguous));
    return result;
  }

  Shards slice() const {
    Shards result;
    for (size_t i = 0; i < count(); ++i) {
      const auto before = move_.before->cut(i, to_.dim), after = move_.after->cut(i, to_.dim);
      result.push_back(rows(shards_[i], to_.dim, before, after).clone(at::MemoryFormat::Contiguous));
    }
    return result;
  }

  /// Replicate -> Partial: the first rank of the axis keeps the value.
  Shards split_value() const {
    Shards result = alone();
    for (size_t i = 0; i < count(); ++i)
      if (place(i) != 0) fill_with_neutral(result[i], move_.after->layout);
    return result;
  }

  Shards all_gather() const {
    Pieces pieces;
    for (const auto& shard : shards_) pieces.emplace_back(members(), shard);
    const auto received = send(CollectiveKind::kAllGather, std::move(pieces), [&](size_t i, size_t m) {
      return sizes_with(i, from_.dim, member_cuts(*move_.before, move_.axis, i, from_.dim)[m].length);
    });
    return concatenate(received, from_.dim);
  }

  Shards all_to_all() const {
    Pieces pieces(count());
    for (size_t i = 0; i < count(); ++i) {
      const auto held = move_.before->cut(i, to_.dim);
      for (const auto& wanted : member_cuts(*move_.after, move_.axis, i, to_.dim))
        pieces[i].push_back(rows(shards_[i], to_.dim, held, wanted));
    }
    const auto received = send(CollectiveKind::kAllToAll, std::move(pieces), [&](size_t i, size_t m) {
      const auto held = member_cuts(*move_.before, move_.axis, i, from_.dim)[m];
      if (from_.dim == to_.dim) return sizes_with(i, to_.dim, intersect(held, move_.after->cut(i, to_.dim)).length);
      auto sizes = sizes_with(i, to_.dim, move_.after->cut(i, to_.dim).length);
      sizes[static_cast<size_t>(from_.dim)] = held.length;
      return sizes;
    });
    return concatenate(received, from_.dim);
  }

  Shards reduce_scatter() const {
    Pieces pieces(count());
    for (size_t i = 0; i < count(); ++i) {
      const auto held = move_.before->cut(i, to_.dim);
      for (const auto& wanted : member_cuts(*move_.after, move_.axis, i, to_.dim))
        pieces[i].push_back(rows(shards_[i], to_.dim, held, wanted));
    }
    const auto received = send(CollectiveKind::kReduceScatter, std::move(pieces), [&](size_t i, size_t) {
      return sizes_with(i, to_.dim, move_.after->cut(i, to_.dim).length);
    });
    return combine(received);
  }

  /// Reduce-scatter of flat chunks, then all-gather: the bytes of a ring, the order of the tree.
  Shards all_reduce() const {
    if (!mesh_.world().transport() && !mesh_.world().meta()) return all_reduce_here();
    Pieces pieces(count());
    const auto chunk_of = [&](size_t i, size_t m) {
      const int64_t total = shards_[i].numel(), ranks = mesh_.axis_size(move_.axis);
      const int64_t chunk = (total + ranks - 1) / ranks, start = std::min(static_cast<int64_t>(m) * chunk, total);
      return Range{start, std::min(chunk, total - start)};
    };
    for (size_t i = 0; i < count(); ++i)
      for (size_t m = 0; m < members(); ++m)
        pieces[i].push_back(shards_[i].reshape({-1}).narrow(0, chunk_of(i, m).start, chunk_of(i, m).length));
    const auto sums = combine(send(CollectiveKind::kAllReduce, std::move(pieces), [&](size_t i, size_t) {
      return std::vector<int64_t>{chunk_of(i, place(i)).length};
    }));
    Pieces whole;
    for (const auto& sum : sums) whole.emplace_back(members(), sum);
    auto result = concatenate(send(CollectiveKind::kAllReduce, std::move(whole), [&](size_t i, size_t m) {
      return std::vector<int64_t>{chunk_of(i, m).length};
    }), 0);
    for (size_t i = 0; i < count(); ++i) result[i] = result[i].view(shards_[i].sizes());
    return result;
  }

  /// All ranks live here: one tree per group, copied to its members.
  Shards all_reduce_here() const {
    Pieces pieces;
    for (const auto& shard : shards_) pieces.emplace_back(members(), shard);
    const auto received = send(CollectiveKind::kAllReduce, std::move(pieces),
                               [&](size_t i, size_t) { return shards_[i].sizes().vec(); });
    Shards result(count());
    for (size_t i = 0; i < count(); ++i) {
      const auto first = static_cast<size_t>(mesh_.group(mesh_.world().local_ranks()[i], move_.axis)[0]);
      const auto owner = static_cast<size_t>(mesh_.world().local_index(static_cast<int>(first)));
      result[i] = owner < i && mesh_.world().observers().empty() ? result[owner].clone()
                                                                : reduce(received[i], from_.reduction);
    }
    return result;
  }

  Shards combine(const Pieces& received) const {
    Shards result;
    for (const auto& nodes : received) result.push_back(reduce(nodes, from_.reduction));
    return result;
  }

  static Shards concatenate(const Pieces& received, int dim) {
    Shards result;
    for (const auto& pieces : received) result.push_back(at::cat(pieces, dim));
    return result;
  }

  const Move& move_;
  const Shards& shards_;
  const Mesh& mesh_;
  const Placement &from_, &to_;
  c10::ScalarType dtype_;
};

CollectiveKind kind_of(const Placement& from, const Placement& to) {
  if (from.is_shard()) return to.is_replicate() ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll;
  return to.is_shard() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
}

void count_traffic(const Move& move) {
  const auto& mesh = move.before->layout.mesh();
  const auto& from = move.before->layout[move.axis];
  if (from.is_replicate() || mesh.axis_size(move.axis) == 1) return;
  mesh.world().traffic().add(mesh.axes()[static_cast<size_t>(move.axis)].name,
                             kind_of(from, move.after->layout[move.axis]), wire_bytes({move}));
}

void convert(Shards& shards, c10::ScalarType dtype) {
  for (auto& shard : shards) shard = shard.to(dtype);
}

}  // namespace

Shards move_shards(const TensorSpec& source, const Shards& shards, const TensorSpec& target,
                   std::string_view /*reason*/) {
  const auto moves = plan_moves(source, target);
  const auto domain = source.layout.mesh().world().domain();
  Shards current = shards;
  for (const auto& move : moves) {
    if (!move.before->any_partial && move.after->any_partial) convert(current, accumulation(domain, source.dtype));
    count_traffic(move);
    current = Mover(move, current, current[0].scalar_type()).run();
    if (move.before->any_partial && !move.after->any_partial) convert(current, stored(domain, source.dtype));
  }
  return current;
}

at::Tensor redistribute_values(const at::Tensor& tensor, const Layout& layout, std::string_view reason) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.check_fresh();
  const auto* target = with_layout(self.spec(), layout);
  if (target->layout == self.spec().layout) return tensor;
  return make_sharded(target, move_shards(self.spec(), self.shards()->either(), *target, reason));
}

}  // namespace lockstep
