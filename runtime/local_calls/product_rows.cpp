#include "runtime/local_calls/product_rows.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/redistribution/collective_parts.h"
#include "runtime/redistribution/collective_rounds.h"

namespace lockstep {
namespace {

/// What a member of this rank's group has of `spec`.
Range cut_of(const TensorSpec& spec, int axis, size_t member, int dim) {
  const auto& mesh = spec.layout.mesh();
  const int rank = mesh.member(mesh.local_ranks()[0], axis, static_cast<int64_t>(member));
  return spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]);
}

}  // namespace

Shards ProductRows::scattered(const Move& move) {
  const int dim = move.after->layout[move.axis].dim;
  LOCKSTEP_CHECK(has_rows_along(dim) && pieces_.empty(), "rows along {}", dim);
  const auto members = static_cast<size_t>(move.before->layout.mesh().axis_size(move.axis));
  dim_ = shard_dim(*move.before, dim);
  pieces_.resize(members);
  const auto collectives = std::make_shared<Collectives>();  // an exchange that fails goes on to ask for sizes
  collectives->push_back(make_collective(move, {at::empty(shard_sizes_, at::dtype(dtype_).device(c10::kMeta))}));
  auto& collective = *collectives->front();
  count_traffic(*collectives);
  auto request = announced(*collectives, 0);
  request.sent = {Pieces(1, std::vector<at::Tensor>(members, at::empty({0}, at::dtype(dtype_))))};
  request.make = [&](size_t, size_t, size_t member) {
    collective.mesh().world().part<ExchangesInFlight>().advance();  // what was sent before goes on
    make_piece(member, dim, rows_for(move, dim, member));
    return pieces_[member];
  };
  request.received_sizes = [collectives](size_t, size_t index, size_t member) {
    return collectives->front()->received_sizes(0, index, member);
  };
  exchange(std::move(request), [&](const std::vector<Pieces>& received) { collective.absorb(0, received[0]); });
  if (failure_) std::rethrow_exception(failure_);
  check_(dim, *this);
  compute_ = {}, check_ = {};
  auto result = collective.take_result();
  result[0] = result[0].to(storage(*move.after));
  return result;
}

Range ProductRows::rows_for(const Move& move, int dim, size_t member) const {
  const auto held = move.before->cut(0, dim);
  const auto wanted = held.overlap(cut_of(*move.after, move.axis, member, dim));
  return {wanted.length > 0 ? wanted.start - held.start : 0, wanted.length};
}

/// The exchange has begun, and goes on to its end whatever fails here: others wait for it.
void ProductRows::make_piece(size_t member, int dim, const Range& rows) {
  try {
    if (!failure_) return (void)(pieces_[member] = compute_(dim, rows));
  } catch (...) {
    failure_ = std::current_exception();
  }
  auto sizes = shard_sizes_;
  sizes[static_cast<size_t>(dim_)] = rows.length;
  pieces_[member] = at::zeros(sizes, at::dtype(dtype_));
}

Shards ProductRows::whole() const { return {at::cat(pieces_, dim_)}; }

}  // namespace lockstep
