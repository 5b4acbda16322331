#include "runtime/redistribution/move_rows.h"

#include <ATen/Functions.h>

#include <numeric>

#include "runtime/context/world.h"
#include "runtime/redistribution/collective_parts.h"
#include "runtime/redistribution/redistribution_batch.h"
#include "runtime/redistribution/sent_bytes.h"
#include "runtime/tensor/packed_rows.h"

namespace lockstep {
namespace {

bool cuts_cells(const TensorSpec& spec, int axis) {
  const auto& placement = spec.layout[axis];
  return placement.is_shard() && placement.dim < spec.packing.cells;
}

/// Every member gets the rows that it has after the move: of its cells, or its part of all of them.
class RowExchange : public Collective {
 public:
  RowExchange(const Move& move, Shards rows, std::shared_ptr<const Shards> before, std::shared_ptr<const Shards> after)
      : Collective(move, std::move(rows)), before_(std::move(before)), after_(std::move(after)) {}

  Pieces pieces(int /*round*/) const override {
    Pieces pieces(shards().size());
    for (size_t i = 0; i < shards().size(); ++i)
      for (size_t m = 0; m < members(); ++m) pieces[i].push_back(piece(i, m));
    return pieces;
  }
  std::vector<int64_t> received_sizes(int /*round*/, size_t index, size_t member) const override;
  std::optional<double> sent_by_value() const override;

 private:
  int rows_dim() const { return shard_dim(*move().before, 0); }
  at::Tensor piece(size_t index, size_t member) const;
  double elements_for(size_t index, size_t member) const;
  /// The numbers of the rows here that member `member` has after the move.
  at::Tensor rows_for(size_t index, size_t member) const;
  /// What a member had before the move, of the dimension whose cut goes.
  Range held_by(size_t index, size_t member) const { return member_cut(*move().before, index, member, from().dim); }
  int64_t first_after(size_t index) const { return move().after->cut(index, from().dim).start; }
  void require_rows(const Pieces& received) const;
  Shards made_of(int round, const Pieces& received) override;
  at::Tensor placed(size_t index, const std::vector<at::Tensor>& received) const;

  std::shared_ptr<const Shards> before_, after_;
};

at::Tensor RowExchange::rows_for(size_t index, size_t member) const {
  const int dim = to().dim;
  return rows_of_cells((*before_)[index], dim, move().before->cut(index, dim).start,
                       member_cut(*move().after, index, member, dim));
}

at::Tensor RowExchange::piece(size_t index, size_t member) const {
  const auto& mine = shards()[index];
  if (to().is_replicate()) return mine;
  if (cuts_cells(*move().after, axis())) return mine.index_select(rows_dim(), rows_for(index, member));
  const auto held = move().before->cut(index, to().dim);
  return rows(mine, shard_dim(*move().before, to().dim), held, member_cut(*move().after, index, member, to().dim));
}

std::vector<int64_t> RowExchange::received_sizes(int /*round*/, size_t index, size_t member) const {
  const auto& present = (*after_)[index];
  auto sizes = with_nodes(*move().before, member_rank(index, member), body_sizes(index));
  const auto set = [&](int dim, int64_t length) {
    sizes[static_cast<size_t>(shard_dim(*move().before, dim))] = length;
  };
  const bool from_cells = cuts_cells(*move().before, axis());
  set(0, from_cells ? count_of_rows(present, from().dim, first_after(index), held_by(index, member))
                    : present.sum().item<int64_t>());
  if (from().is_shard() && !from_cells) set(from().dim, held_by(index, member).length);
  if (to().is_shard() && !cuts_cells(*move().after, axis())) set(to().dim, move().after->cut(index, to().dim).length);
  return sizes;
}

/// To members other than itself.
std::optional<double> RowExchange::sent_by_value() const {
  if (mesh().world().meta()) return std::nullopt;
  double elements = 0;
  for (size_t i = 0; i < shards().size(); ++i) {
    const auto me = static_cast<size_t>(mesh().coordinate(mesh().local_ranks()[i], axis()));
    for (size_t m = 0; m < members(); ++m) {
      if (m == me) continue;
      elements += elements_for(i, m);
    }
  }
  return elements / static_cast<double>(shards().size()) * element_bytes(*move().before);
}

/// Of piece(), which is not made for that.
double RowExchange::elements_for(size_t index, size_t member) const {
  if (!cuts_cells(*move().after, axis())) return static_cast<double>(piece(index, member).numel());  // a view
  const auto& mine = shards()[index];
  const int64_t here = mine.size(rows_dim()), dim = to().dim;
  const int64_t count = count_of_rows((*before_)[index], dim, move().before->cut(index, to().dim).start,
                                      member_cut(*move().after, index, member, to().dim));
  const int64_t of_row = mine.numel() / std::max<int64_t>(here, 1);
  return static_cast<double>(of_row * count);
}

/// Which cells have rows came first, from the same ranks: both must agree.
void RowExchange::require_rows(const Pieces& received) const {
  for (size_t i = 0; i < received.size(); ++i)
    for (size_t m = 0; m < received[i].size(); ++m)
      if (const auto wanted = received_sizes(0, i, m); received[i][m].sizes() != at::IntArrayRef(wanted))
        fail<Inconsistency>(
            "rank {} received rows {} from rank {} along {}; the cells that it received before are of rows {}: one of "
            "both arrived wrongly",
            move().before->layout.mesh().local_ranks()[i], c10::str(received[i][m].sizes()), member_rank(i, m),
            move().before->layout.mesh().axes()[static_cast<size_t>(axis())].name, c10::str(at::IntArrayRef(wanted)));
}

Shards RowExchange::made_of(int /*round*/, const Pieces& received) {
  require_rows(received);
  if (from().is_partial()) return combine(move(), received);
  if (!cuts_cells(*move().before, axis())) return concatenate(received, shard_dim(*move().before, from().dim));
  Shards result;
  for (size_t i = 0; i < received.size(); ++i) result.push_back(placed(i, received[i]));
  return result;
}

/// Each member's rows where their cells are.
at::Tensor RowExchange::placed(size_t index, const std::vector<at::Tensor>& received) const {
  const auto& present = (*after_)[index];
  auto sizes = received[0].sizes().vec();
  sizes[static_cast<size_t>(rows_dim())] = present.sum().item<int64_t>();
  auto result = at::empty(sizes, received[0].options());
  for (size_t m = 0; m < received.size(); ++m)
    result.index_copy_(rows_dim(), rows_of_cells(present, from().dim, first_after(index), held_by(index, m)),
                       received[m]);
  return result;
}

/// Cells before each move and after the last.
std::vector<std::shared_ptr<const Shards>> cells_along(const std::vector<Move>& moves,
                                                       std::shared_ptr<const Shards> present) {
  std::vector<std::shared_ptr<const Shards>> all{std::move(present)};
  for (const auto& move : moves) {
    const auto *from = spec_of_cells(*move.before), *to = spec_of_cells(*move.after);
    all.push_back(from == to ? all.back()
                             : std::make_shared<const Shards>(move_shards(*from, *all.back(), *to, "cells")));
  }
  return all;
}

}  // namespace

bool moves_cells(const Move& move) { return cuts_cells(*move.before, move.axis) || cuts_cells(*move.after, move.axis); }

std::unique_ptr<Collective> make_row_exchange(const Move& move, Shards rows, std::shared_ptr<const Shards> before,
                                              std::shared_ptr<const Shards> after) {
  return std::make_unique<RowExchange>(move, std::move(rows), std::move(before), std::move(after));
}

Shards rows_taken(const Move& move, const Shards& shards, const Shards& present) {
  const int dim = move.after->layout[move.axis].dim;
  Shards result;
  for (size_t i = 0; i < shards.size(); ++i)
    result.push_back(shards[i].index_select(
        shard_dim(*move.before, 0),
        rows_of_cells(present[i], dim, move.before->cut(i, dim).start, move.after->cut(i, dim))));
  return result;
}

Shards all_rows(const TensorSpec& spec, const Shards& rows, const Shards& present) {
  Shards all;
  for (size_t i = 0; i < rows.size(); ++i)
    all.push_back(unpacked(rows[i], present[i], spec.layout.ordered_sum() != nullptr));
  return all;
}

Shards rows_of_all(const TensorSpec& spec, const Shards& all, const Shards& present) {
  Shards rows;
  for (size_t i = 0; i < all.size(); ++i)
    rows.push_back(packed(all[i], present[i], spec.layout.ordered_sum() != nullptr));
  return rows;
}

std::shared_ptr<ShardSet> moved_rows(const TensorSpec& source, ShardSet& set, const TensorSpec& target) {
  const auto moves = plan_moves(source, target);
  auto rows = set.local_tensors();
  if (source.layout.mesh().local_count() == 0) return std::make_shared<ShardSet>(Shards{}, target.any_partial);
  const auto present = cells_along(moves, set.shared_present());
  RedistributionBatch batch;
  batch.add_rows(moves, std::move(rows), present);
  batch.run();
  auto result = std::make_shared<ShardSet>(batch.take(0), target.any_partial);
  result->set_present(present.back());
  return result;
}

}  // namespace lockstep
