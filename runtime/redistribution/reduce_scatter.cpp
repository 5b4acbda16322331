#include "runtime/redistribution/collective_parts.h"

namespace lockstep {
namespace {

/// P -> S: every member gets all parts of the rows that it has after the move. Where all of them live here and nobody
/// watches what arrives, a group adds up whole shards once, and each member's rows are a view of the sum: as many parts
/// as members squared would cost more than the sums.
class ReduceScatter : public Collective {
 public:
  ReduceScatter(const Move& move, Shards shards) : Collective(move, std::move(shards)), sums_whole_(has_one_result()) {}

  Pieces pieces(int /*round*/) const override { return sums_whole_ ? to_everyone(true) : cut_for_members(); }
  bool is_alike(int /*round*/) const override { return sums_whole_; }
  /// Asked for messages alone.
  std::vector<int64_t> received_sizes(int /*round*/, size_t index, size_t member) const override {
    return piece_sizes(index, member, to().dim, move().after->cut(index, to().dim).length);
  }

 private:
  Shards made_of(int /*round*/, const Pieces& received) override {
    if (!sums_whole_) return combine(move(), received);
    const auto sums = combine_once_per_group(move(), received);
    const int dim = to().dim, cut_dim = shard_dim(*move().after, dim);
    Shards result;
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto& sum = sums[static_cast<size_t>(first_of_group(move(), i))];
      result.push_back(rows(sum, cut_dim, move().before->cut(i, dim), move().after->cut(i, dim)));
    }
    return result;
  }

  bool sums_whole_;
};

}  // namespace

std::unique_ptr<Collective> make_reduce_scatter(const Move& move, Shards shards) {
  return std::make_unique<ReduceScatter>(move, std::move(shards));
}

}  // namespace lockstep
