#include "runtime/redistribution/collective_parts.h"

namespace lockstep {
namespace {

/// S -> another S: every member gets what it has after the move.
class AllToAll : public Collective {
 public:
  using Collective::Collective;

  Pieces pieces(int /*round*/) const override { return cut_for_members(); }
  std::vector<int64_t> received_sizes(int /*round*/, size_t index, size_t member) const override {
    const auto held = member_cut(*move().before, index, member, from().dim);
    const auto mine = move().after->cut(index, to().dim);
    if (from().dim == to().dim) return piece_sizes(index, member, to().dim, held.overlap(mine).length);
    auto sizes = piece_sizes(index, member, to().dim, mine.length);
    sizes[static_cast<size_t>(shard_dim(*move().before, from().dim))] = held.length;
    return sizes;
  }

 private:
  Shards made_of(int /*round*/, const Pieces& received) override {
    return concatenate(received, shard_dim(*move().before, from().dim));
  }
};

}  // namespace

std::unique_ptr<Collective> make_all_to_all(const Move& move, Shards shards) {
  return std::make_unique<AllToAll>(move, std::move(shards));
}

}  // namespace lockstep
