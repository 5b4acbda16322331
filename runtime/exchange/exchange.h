#pragma once
#include <functional>
#include <memory>

#include "runtime/context/traffic.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/shard_set.h"

namespace lockstep {

class MessageExchange;
class ExchangesInFlight;

/// pieces[i][m]: a tensor between local rank i (in the order of Mesh::local_ranks()) and member m of its group.
using Pieces = std::vector<std::vector<at::Tensor>>;

/// One exchange along a mesh axis: what is sent of each tensor of a bundle, and how large what arrives will be.
struct Exchange {
  const Mesh& mesh;
  int axis;
  CollectiveKind kind;
  c10::ScalarType dtype;          ///< of all tensors
  std::vector<uint64_t> subject;  ///< what it moves, as all ranks know it alike: the round and the specs' digests
  std::vector<Pieces> sent;       ///< per tensor; the pieces of a bundle for one member travel in one message
  /// Sizes of the piece of tensor t that local rank i receives from member m of its group: (t, i, m).
  std::function<std::vector<int64_t>(size_t, size_t, size_t)> received_sizes;
  /// Per tensor, where its pieces arrive when they come as messages, our own included: contiguous, of those sizes.
  /// Empty: in tensors of their own, or of whoever sent them; our own piece is handed over as it is.
  std::vector<Pieces> destinations = {};
  /// Of messages: makes the piece of tensor t from local rank i for member m when it is about to leave, our own last;
  /// `sent` has none yet. What others get is on its way while the next is made. Empty: `sent` has them all.
  std::function<at::Tensor(size_t, size_t, size_t)> make = {};
  /// Of ranks that all live here: a rank's only piece is for all members, and the first of a group takes all of them
  /// for the others.
  bool is_alike = false;
};

/// The one primitive of communication: every local rank gives each member of its group a piece and gets one from each.
/// All collectives are an exchange and a local combination. Where all ranks live in this process and there is no
/// transport, pieces are handed over as they are; otherwise they travel as messages, with the same bits.
/// `use` gets what arrived, to be read and not kept: it may lie in the memory of others, who wait for that. Once this
/// returns, what was sent may change.
/// Throws TransportError when peers disagree about the collective or cannot be reached.
using Use = std::function<void(const std::vector<Pieces>&)>;
void exchange(Exchange request, const Use& use);

/// An exchange in two halves: in between something else is computed. Messages move whenever an op has run.
/// What is sent must stay as it is until a later exchange() has ended, on all ranks alike.
class PendingExchange {
 public:
  /// Begins it; never waits. What `request` refers to must live as long as this. REQUIRES: World::overlaps().
  explicit PendingExchange(Exchange request);
  const Exchange& request() const;
  /// Waits for what comes from one member, of the first tensor and the first local rank: to be read until finish().
  const at::Tensor& piece(size_t member);
  /// Waits for what is not there yet. Throws TransportError, as exchange() does. Once.
  std::vector<Pieces> finish();
  /// The same, and until what was sent has left: it may change from then on.
  std::vector<Pieces> finish_and_send();

 private:
  ExchangesInFlight& in_flight_;
  std::shared_ptr<MessageExchange> machine_;
};

}  // namespace lockstep
