#include "runtime/redistribution/collective_parts.h"

namespace lockstep {
namespace {

/// P -> S: every member gets all parts of the rows that it has after the move. With one result a group adds up whole
/// shards once, and each member's rows are a view of the sum: as many parts as members squared would cost more than the
/// sums.
class ReduceScatter : public Collective {
 public:
  using Collective::Collective;

  Pieces pieces(int /*round*/) const override { return has_one_result() ? to_everyone(true) : cut_for_members(); }
  bool is_alike(int /*round*/) const override { return has_one_result(); }
  /// Asked for messages alone.
  std::vector<int64_t> received_sizes(int /*round*/, size_t index, size_t member) const override {
    return piece_sizes(index, member, to().dim, move().after->cut(index, to().dim).length);
  }

 private:
  Shards made_of(int /*round*/, const Pieces& received) override {
    if (!has_one_result()) return combine(move(), received);
    Shards sums(received.size()), result;
    for (size_t i = 0; i < received.size(); ++i) {
      const auto owner = static_cast<size_t>(first_of_group(move(), i));
      auto& sum = sums[owner];
      if (!sum.defined()) sum = combine_one(move(), owner, received[owner]);
      result.push_back(my_rows(i, sum));
    }
    return result;
  }

  at::Tensor my_rows(size_t index, const at::Tensor& sum) const {
    const int dim = to().dim;
    return rows(sum, shard_dim(*move().after, dim), move().before->cut(index, dim), move().after->cut(index, dim));
  }
};

}  // namespace

std::unique_ptr<Collective> make_reduce_scatter(const Move& move, Shards shards) {
  return std::make_unique<ReduceScatter>(move, std::move(shards));
}

}  // namespace lockstep
