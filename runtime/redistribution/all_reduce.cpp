#include <algorithm>

#include "runtime/context/world.h"
#include "runtime/redistribution/collective_parts.h"

namespace lockstep {
namespace {

/// P -> R: each member adds up a chunk of the flat shards, in the second round all get all chunks. Or, in one round,
/// everybody adds up whole shards.
class AllReduce : public Collective {
 public:
  AllReduce(const Move& move, Shards shards);

  int rounds() const override { return sends_whole_ ? 1 : 2; }
  void send_whole() override { sends_whole_ = true; }
  Pieces pieces(int round) const override { return adds_chunks(round) ? flat_chunks() : to_everyone(is_alike(round)); }
  bool is_alike(int /*round*/) const override { return has_one_result(); }
  std::vector<int64_t> received_sizes(int round, size_t index, size_t member) const override;
  Pieces destinations(int round) override;

 private:
  bool adds_chunks(int round) const { return !sends_whole_ && round == 0; }
  int local_rank(size_t index) const { return mesh().local_ranks()[index]; }
  Range flat_chunk(size_t index, size_t member) const;
  Pieces flat_chunks() const;
  Shards made_of(int round, const Pieces& received) override;
  Shards gathered(const Pieces& received);

  bool sends_whole_;
  Gathering gathering_;  ///< of the second round
};

/// Where all ranks live here nothing is gained by sending chunks.
AllReduce::AllReduce(const Move& move, Shards shards)
    : Collective(move, std::move(shards)),
      sends_whole_(!mesh().world().as_messages()),
      gathering_(shard_dim(*move.after, 0)) {}

std::vector<int64_t> AllReduce::received_sizes(int round, size_t index, size_t member) const {
  const int rank = local_rank(index), sender = member_rank(index, member);
  if (sends_whole_) return with_nodes(*move().before, sender, body_sizes(index));
  if (round == 1) return with_nodes(*move().after, rank, {flat_chunk(index, member).length});
  const auto me = static_cast<size_t>(mesh().coordinate(rank, axis()));
  return with_nodes(*move().before, sender, {flat_chunk(index, me).length});
}

Pieces AllReduce::destinations(int round) {
  return round == 1 ? gathering_.destinations(*this, round, shards()) : Pieces{};
}

Range AllReduce::flat_chunk(size_t index, size_t member) const {
  const int64_t total = c10::multiply_integers(body_sizes(index)), ranks = mesh().axis_size(axis());
  const int64_t chunk = (total + ranks - 1) / ranks, start = std::min(static_cast<int64_t>(member) * chunk, total);
  return {start, std::min(chunk, total - start)};
}

Pieces AllReduce::flat_chunks() const {
  Pieces pieces(shards().size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto flat =
        shards()[i].reshape(with_nodes(*move().before, local_rank(i), {c10::multiply_integers(body_sizes(i))}));
    for (size_t m = 0; m < members(); ++m) {
      const auto chunk = flat_chunk(i, m);
      pieces[i].push_back(flat.narrow(-1, chunk.start, chunk.length));
    }
  }
  return pieces;
}

Shards AllReduce::made_of(int round, const Pieces& received) {
  if (!sends_whole_ && !adds_chunks(round)) return gathered(received);
  return once_per_group(move(), has_one_result(), [&](size_t i) { return combine_one(move(), i, received[i]); });
}

Shards AllReduce::gathered(const Pieces& received) {
  auto result = gathering_.take(*this, received);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = result[i].view(with_nodes(*move().after, local_rank(i), body_sizes(i)));
  return result;
}

}  // namespace

std::unique_ptr<Collective> make_all_reduce(const Move& move, Shards shards) {
  return std::make_unique<AllReduce>(move, std::move(shards));
}

}  // namespace lockstep
