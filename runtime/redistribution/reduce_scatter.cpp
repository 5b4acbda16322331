#include "runtime/redistribution/collective_parts.h"

namespace lockstep {
namespace {

/// P -> S: every member gets all parts of the rows that it has after the move.
class ReduceScatter : public Collective {
 public:
  using Collective::Collective;

  Pieces pieces(int /*round*/) const override { return cut_for_members(); }
  std::vector<int64_t> received_sizes(int /*round*/, size_t index, size_t member) const override {
    return piece_sizes(index, member, to().dim, move().after->cut(index, to().dim).length);
  }

 private:
  Shards made_of(int /*round*/, const Pieces& received) override { return combine(move(), received); }
};

}  // namespace

std::unique_ptr<Collective> make_reduce_scatter(const Move& move, Shards shards) {
  return std::make_unique<ReduceScatter>(move, std::move(shards));
}

}  // namespace lockstep
