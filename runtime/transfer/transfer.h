#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/tensor/mesh.h"
#include "runtime/tensor/spec.h"

/// Values on their way from one part of a mesh to another: each rank gives what it has to the rank with the same other
/// coordinates. The two parts are submeshes of one whole mesh that differ in the coordinate of one axis (stages of a
/// pipeline); a tensor has the same layout on both.
namespace lockstep {

/// The spec on `mesh` of what is transferred there: the same layout, contiguous. Throws BadInput for an unfinished sum,
/// and where the tensor's mesh and `mesh` are not two such parts.
const TensorSpec* spec_at(const TensorSpec& spec, const Mesh& mesh);

/// Sends the shards that lie here; never waits. What is sent must not be written afterwards. `tag` says what it is, to
/// be compared with what the other end expects; of what is on its way between two parts each has another. Where no rank
/// of the tensor's mesh lives nothing happens.
void send(const at::Tensor& tensor, const Mesh& to, uint64_t tag);

/// A tensor that is to come. Those from one part to another have to be made in the order in which they are sent; they
/// may end in any order.
class PendingTransfer {
 public:
  /// Begins to take it; never waits. `spec`: spec_at() of what is sent.
  PendingTransfer(const TensorSpec* spec, const Mesh& from, uint64_t tag);
  ~PendingTransfer();
  PendingTransfer(PendingTransfer&&) noexcept;

  /// Waits for it; without autograd. Once. Throws TransportError, as exchange() does. Where no rank of its mesh lives
  /// it has no shards.
  at::Tensor finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How often tensors of each spec were sent along each axis, in a run without values. A World::part().
struct TransferCounts {
  explicit TransferCounts(World&) {}
  std::map<std::pair<const TensorSpec*, std::string>, int64_t> sent;
};

/// `tensor` on another part of its mesh: both ends at once, which all ranks call. Differentiable: the gradient goes
/// back to where the tensor was, in its layout.
at::Tensor transfer(const at::Tensor& tensor, const Mesh& to);

}  // namespace lockstep
