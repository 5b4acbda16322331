#pragma once
#include "runtime/redistribution/exchange.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep {

/// One move of one tensor on all local ranks, as rounds of what to send and what to make of what arrives. Several
/// collectives of one kind and axis can share an exchange (a bucket).
///
/// The shards of an ordered Partial have a dimension of nodes in front, which travels along; it disappears when the
/// last axis that cuts the sum has been reduced.
class Collective {
 public:
  Collective(const Move& move, Shards shards);

  /// True if no other rank's data is needed: run() does it all.
  bool is_local() const;
  Shards run_locally() const;

  CollectiveKind kind() const;
  int axis() const { return move_.axis; }
  const Mesh& mesh() const { return mesh_; }
  c10::ScalarType dtype() const { return shards_[0].scalar_type(); }

  /// An all-reduce over messages has two: reduce-scatter of flat chunks, then all-gather. Everything else has one.
  int rounds() const;
  /// Of the whole tensor: what all ranks know alike.
  size_t whole_bytes() const;
  const Move& move() const { return move_; }
  /// Makes an all-reduce one round of whole tensors: the same bits, less waiting, more bytes. All ranks decide alike.
  void send_whole() { sends_whole_ = true; }
  /// Whether that takes no more bytes between two ranks: where an ordered sum has no more nodes before than after.
  bool whole_is_as_cheap() const;
  Pieces pieces(int round) const;
  std::vector<int64_t> received_sizes(int round, size_t index, size_t member) const;
  /// Where the pieces of a gather are to arrive: in the result itself, if each lies there in one piece. Else empty.
  Pieces destinations(int round);
  void absorb(int round, const Pieces& received);
  Shards take_result() { return std::move(shards_); }

 private:
  size_t members() const { return static_cast<size_t>(mesh_.axis_size(move_.axis)); }
  size_t member_of(size_t index) const;
  int member_rank(size_t index, size_t member) const;
  int before_dim(int dim) const { return dim + lead_; }
  bool gathers(int round) const;
  int gathered_dim(size_t index, int round) const;
  bool make_destinations(size_t index, int round);
  Shards gathered(const Pieces& received, int round);
  Range flat_chunk(size_t index, size_t member) const;
  std::vector<int64_t> piece_sizes(size_t index, size_t member, int dim, int64_t length) const;
  Pieces cut_for_members() const;
  Pieces flat_chunks() const;
  Pieces to_everyone() const;
  Shards slice() const;
  Shards split_value() const;
  Shards combine(const Pieces& received) const;
  at::Tensor combine_one(size_t index, const std::vector<at::Tensor>& received) const;
  at::Tensor combine_term(size_t index, const std::vector<at::Tensor>& received, int64_t term) const;
  Shards combine_once_per_group(const Pieces& received) const;

  Move move_;
  Shards shards_;
  std::vector<std::vector<int64_t>> body_sizes_;  ///< of the shards before the move, without the nodes
  const Mesh& mesh_;
  Placement from_, to_;
  int lead_;  ///< 1 if the shards before the move have nodes in front
  bool sends_whole_;
  Pieces destinations_;  ///< views of `gathered_`
  Shards gathered_;      ///< the result, if pieces arrive in it
};

}  // namespace lockstep
