#pragma once
#include <memory>
#include <optional>

#include "runtime/exchange/exchange.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep {

/// Which collective makes a move. REQUIRES: !is_local(move).
CollectiveKind kind_of(const Move& move);

/// One move of one tensor on all local ranks, as rounds of what to send and what to make of what arrives. Each kind is
/// a class in a file of its own. Several collectives of one kind and axis can share an exchange (a bucket).
///
/// The shards of an ordered Partial have a dimension of nodes in front, which travels along; it disappears when the
/// last axis that cuts the sum has been reduced.
class Collective {
 public:
  Collective(const Move& move, Shards shards);
  virtual ~Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  const Move& move() const { return move_; }
  /// one_result.h
  bool has_one_result() const { return has_one_result_; }
  CollectiveKind kind() const { return kind_of(move_); }
  int axis() const { return move_.axis; }
  const Mesh& mesh() const { return move_.before->layout.mesh(); }
  c10::ScalarType dtype() const { return shards_[0].scalar_type(); }

  /// An all-reduce over messages has two: reduce-scatter of flat chunks, then all-gather. Everything else has one.
  virtual int rounds() const { return 1; }
  /// Bytes that a rank sends, the mean of those that live here, where values decide it; else layouts do (sent_bytes.h).
  virtual std::optional<double> sent_by_value() const { return std::nullopt; }
  /// Makes two rounds one, of whole tensors: the same bits, less waiting, more bytes. All ranks decide alike.
  virtual void send_whole() {}
  virtual Pieces pieces(int round) const = 0;
  /// Exchange::is_alike: what is sent to all members alike is handed over once per group, where nobody watches.
  virtual bool is_alike(int /*round*/) const { return false; }
  virtual std::vector<int64_t> received_sizes(int round, size_t index, size_t member) const = 0;
  /// Where the pieces of a gather are to arrive: in the result itself, if each lies there in one piece. Else empty.
  virtual Pieces destinations(int /*round*/) { return {}; }
  void absorb(int round, const Pieces& received) { shards_ = made_of(round, received); }
  Shards take_result() { return std::move(shards_); }

 protected:
  /// The shards before the move, and after each round what it made of them.
  const Shards& shards() const { return shards_; }
  /// Of a shard before the move, without the nodes.
  const std::vector<int64_t>& body_sizes(size_t index) const { return body_sizes_[index]; }
  const Placement& from() const { return move_.before->layout[move_.axis]; }
  const Placement& to() const { return move_.after->layout[move_.axis]; }

  size_t members() const { return static_cast<size_t>(mesh().axis_size(move_.axis)); }
  /// The rank that is this member of the group of local rank `index`.
  int member_rank(size_t index, size_t member) const;
  /// The rows of `dim` that a member has by `spec`, one of the move's two.
  Range member_cut(const TensorSpec& spec, size_t index, size_t member, int dim) const;
  /// Of what a member sends: the sizes of its shard but for one dimension.
  std::vector<int64_t> piece_sizes(size_t index, size_t member, int dim, int64_t length) const;

  /// The whole shard for each member, or once for all.
  Pieces to_everyone(bool alike) const;
  /// For each member the rows that it has after the move.
  Pieces cut_for_members() const;

 private:
  /// The shards after a round.
  virtual Shards made_of(int round, const Pieces& received) = 0;

  Move move_;
  Shards shards_;
  bool has_one_result_;
  std::vector<std::vector<int64_t>> body_sizes_;
};

/// REQUIRES: !is_local(move).
std::unique_ptr<Collective> make_collective(const Move& move, Shards shards);

}  // namespace lockstep
