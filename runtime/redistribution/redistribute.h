#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/reduce.h"
#include "runtime/tensor/shard_set.h"
#include "runtime/tensor/spec.h"

namespace lockstep {

/// `tensor` in another layout of its mesh: the same values, moved by the cheapest sequence of collectives.
///
/// Differentiable: the gradient goes back to the source's layout, a Partial sum's or average's to Replicate (other
/// Partials raise BadInput in backward). It stays a node of the graph even when it moves nothing, so that gradients
/// are brought to a known layout there. The result is contiguous and has bytes of its own, on every mesh: writing it in
/// place leaves the source as it is, and the other way round. (Where nothing moves they are copied before the first
/// write.)
at::Tensor redistribute(const at::Tensor& tensor, const Layout& layout);

/// `set`, with lazy copies in place of shards that lie in the bytes of `source`.
std::shared_ptr<ShardSet> with_own_bytes(const std::shared_ptr<ShardSet>& set, ShardSet& source);

/// The same without autograd, and without a new tensor where nothing moves.
at::Tensor redistribute_values(const at::Tensor& tensor, const Layout& layout, std::string_view reason);

/// Starts nothing yet: the result is pending, and moves on first use. Any number may be pending; all ranks must first
/// use them in the same order. The source must not be written in between (checked). No autograd.
at::Tensor redistribute_later(const at::Tensor& tensor, const Layout& layout);

/// Several tensors at once (all of one mesh): collectives of one kind on one axis are fused into one. No autograd.
std::vector<at::Tensor> redistribute_bucket(const std::vector<at::Tensor>& tensors, const std::vector<Layout>& layouts);

/// redistribute_bucket() in two halves, so that something can be computed in between.
class PendingBucket {
 public:
  PendingBucket(const std::vector<at::Tensor>& tensors, const std::vector<Layout>& layouts);
  ~PendingBucket();
  PendingBucket(PendingBucket&&) noexcept;

  /// Lets the first collective begin, where the World overlaps (else finish() does all); never waits. The tensors must
  /// not be written until a collective that begins later has ended, on all ranks alike.
  void start();
  /// What redistribute_bucket() gives. Once.
  std::vector<at::Tensor> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One step of a redistribution: the placement of one axis changes.
struct Move {
  int axis;
  const TensorSpec* before;
  const TensorSpec* after;
};

/// The cheapest sequence of moves, by bytes on the wire; empty if nothing moves.
std::vector<Move> plan_moves(const TensorSpec& source, const TensorSpec& target);

/// Moves shards from one spec to another of the same mesh, sizes and dtype.
std::shared_ptr<ShardSet> moved(const TensorSpec& source, ShardSet& set, const TensorSpec& target,
                                std::string_view reason);
/// The same of what is not packed.
Shards move_shards(const TensorSpec& source, const Shards& shards, const TensorSpec& target, std::string_view reason);

}  // namespace lockstep
