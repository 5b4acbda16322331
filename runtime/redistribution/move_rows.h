#pragma once
#include <memory>

#include "runtime/redistribution/collective.h"

/// Moves of packed rows: how many a rank holds is a part of the value, so it is told first, as which cells are present.
/// No rows from or to a rank is nothing special.
namespace lockstep {

/// Whether a move changes which cells' rows ranks hold (or which they hold whole); other moves are those of any tensor.
bool moves_cells(const Move& move);

/// What moves cells. `before`, `after`: ShardSet::present() on both sides. REQUIRES: !is_local(move).
std::unique_ptr<Collective> make_row_exchange(const Move& move, Shards rows, std::shared_ptr<const Shards> before,
                                              std::shared_ptr<const Shards> after);

/// Replicate -> G: what a rank keeps.
Shards rows_taken(const Move& move, const Shards& rows, const Shards& present);

/// Packed rows as observers are told of them, all rows, 0 where there is none; and back.
Shards all_rows(const TensorSpec& spec, const Shards& rows, const Shards& present);
Shards rows_of_all(const TensorSpec& spec, const Shards& all, const Shards& present);

/// moved(), of packed rows: first cells travel, then rows.
std::shared_ptr<ShardSet> moved_rows(const TensorSpec& source, ShardSet& set, const TensorSpec& target);

}  // namespace lockstep
