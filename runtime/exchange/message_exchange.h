#pragma once
#include <memory>
#include <span>

#include "runtime/context/run_context.h"
#include "runtime/exchange/exchange.h"
#include "runtime/transport/transport.h"

namespace lockstep {

/// An exchange over messages, as a resumable state machine: posts everything, then takes until all is there. Of its
/// errors it tells which collective they ended, and tells the recorder.
class MessageExchange {
 public:
  using Earlier = std::span<const std::shared_ptr<MessageExchange>>;

  /// `may_borrow`: pieces may lie in other ranks' memory, who wait until they are dropped and settle() was called.
  MessageExchange(Exchange request, uint64_t number, bool may_borrow);

  CollectiveKind kind() const { return request_.kind; }
  const Exchange& request() const { return request_; }

  /// The rank waits for this one from now on, as far as its recorder is concerned.
  void announce();
  /// Hands over all that it sends.
  void start();
  /// Takes what has arrived, but not from a rank that one of `earlier` still takes from: messages of a pair of ranks
  /// come in the order in which they were posted.
  void advance(Earlier earlier);
  bool is_complete() const { return missing_pieces_ == 0; }
  /// Lets the transport wait for what is missing, or to be taken.
  void wait();
  /// Whether a piece lies in another rank's memory.
  bool has_borrowed() const { return has_borrowed_; }
  /// Whether what a member sends is here, of the first tensor and the first local rank; and that.
  bool has(size_t member) const { return received_[0][0][member].defined(); }
  const at::Tensor& piece(size_t member) const { return received_[0][0][member]; }
  /// All that arrived. REQUIRES: is_complete().
  std::vector<Pieces> take_all() { return std::move(received_); }
  /// The pieces are dropped.
  void settle();
  /// It is over: nobody is waited for.
  void end();

 private:
  /// A member's pieces, which arrive in one message.
  struct Arrival {
    std::vector<at::Tensor> tensors;
    std::vector<MutableSpan> parts;
  };

  template <class Action>
  void guarded(const Action& action);
  [[noreturn]] void give_up(const TransportError& error);
  const std::vector<int>& missing();
  const std::string& axis_name() const { return request_.mesh.axes()[static_cast<size_t>(request_.axis)].name; }
  bool is_own(size_t i, size_t m) const { return groups_[i][m] == request_.mesh.local_ranks()[i]; }
  bool is_transfer() const { return request_.kind == CollectiveKind::kTransfer; }
  /// Of a transfer one end sends and the other takes.
  bool sends_to(size_t i, size_t m) const {
    return is_transfer() ? m == 1 && !request_.mesh.transfer_end().receives : !is_own(i, m);
  }
  bool takes_piece(size_t m) const { return !is_transfer() || (m == 0 && request_.mesh.transfer_end().receives); }
  bool is_missing(size_t i, size_t m) const { return takes_piece(m) && !received_[0][i][m].defined(); }
  bool takes_from(int source, int destination) const;
  size_t first_behind(size_t i) const;
  void make(size_t i, size_t m);
  void post(size_t i, size_t m);
  void keep_own(size_t i, size_t m);
  Payload payload_of(size_t i, size_t m) const;
  MessageHeader expected(size_t i, size_t m) const;
  void take(size_t i, size_t m);
  void check(size_t i, size_t m, const MessageHeader& header);
  bool borrow(size_t i, size_t m);
  void make_room(size_t i, size_t m);
  bool has_destination(size_t t) const { return t < request_.destinations.size() && !request_.destinations[t].empty(); }

  Exchange request_;
  Transport& transport_;
  FlightRecorder* recorder_;  ///< null: nobody writes down what happens
  bool may_borrow_, has_borrowed_ = false, announced_ = false;
  uint64_t sent_bytes_ = 0;
  const OpId id_ = RunContext::current().op_running();
  std::vector<int> missing_;
  std::vector<RankGroup> groups_;
  std::vector<MessageHeader> headers_;
  std::vector<std::vector<Arrival>> arrivals_;
  std::vector<Pieces> received_;
  size_t missing_pieces_ = 0;  ///< messages that are not there yet
};

/// For every tensor of a bundle, local rank and member of its group: no tensor yet.
std::vector<Pieces> empty_bundle(const Exchange& request);

}  // namespace lockstep
