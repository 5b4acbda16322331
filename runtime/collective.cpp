#include "runtime/collective.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/observer.h"
#include "runtime/tensor_bytes.h"
#include "runtime/transport/flight_recorder.h"
#include "runtime/world.h"

namespace lockstep {
namespace {

std::vector<Pieces> empty_bundle(const Exchange& request) {
  const auto members = static_cast<size_t>(request.mesh.axis_size(request.axis));
  return std::vector<Pieces>(request.sent.size(), Pieces(request.mesh.local_count(), std::vector<at::Tensor>(members)));
}

/// The collective as a resumable state machine over a transport: posts everything, then takes until all is there.
class ExchangeMachine {
 public:
  ExchangeMachine(Exchange request, uint64_t number)
      : request_(std::move(request)),
        transport_(*request_.mesh.world().transport()),
        recorder_(request_.mesh.local_count() == 1 ? transport_.recorder() : nullptr),
        received_(empty_bundle(request_)) {
    for (const int rank : request_.mesh.local_ranks()) {
      groups_.push_back(request_.mesh.group(rank, request_.axis));
      arrivals_.emplace_back(groups_.back().size());
      headers_.push_back({number, 0, static_cast<uint8_t>(request_.kind), static_cast<int8_t>(request_.dtype),
                          group_digest(groups_.back()), 0});
    }
  }

  void start() {
    if (recorder_) recorder_->begin(id_, axis_name(), headers_[0], c10::toString(request_.dtype));
    for (size_t i = 0; i < groups_.size(); ++i)
      for (size_t m = 0; m < groups_[i].size(); ++m) post(i, m);
    if (recorder_) recorder_->sends(sent_bytes_);
  }

  /// Takes what has arrived; true once nothing is missing.
  bool advance() {
    bool done = true;
    for (size_t i = 0; i < groups_.size(); ++i)
      for (size_t m = 0; m < groups_[i].size(); ++m)
        if (!received_[0][i][m].defined()) done &= take(i, m);
    return done;
  }

  /// Tells the recorder whom this rank waits for: none if others only have to take what it sent.
  void record_waiting() {
    if (recorder_) recorder_->waits_for(missing());
  }

  std::vector<Pieces> finish() {
    if (recorder_) recorder_->end();
    return std::move(received_);
  }

  /// The error that ended it, and where that was.
  [[noreturn]] void give_up(const TransportError& error) {
    const auto text = fmt::format("{}; in collective {} ({} on {}) of {}", error.what(), headers_.at(0).collective,
                                  to_text(request_.kind), axis_name(), id_.text());
    if (recorder_) recorder_->give_up(text, missing());
    throw TransportError(text);
  }

 private:
  /// REQUIRES: recorder_.
  const std::vector<int>& missing() {
    missing_.clear();
    for (size_t m = 0; m < groups_[0].size(); ++m)
      if (!received_[0][0][m].defined()) missing_.push_back(groups_[0][m]);
    return missing_;
  }
  const std::string& axis_name() const { return request_.mesh.axes()[static_cast<size_t>(request_.axis)].name; }

  void post(size_t i, size_t m) {
    const int source = request_.mesh.local_ranks()[i];
    const int destination = groups_[i][m];
    if (destination == source) {
      for (size_t t = 0; t < received_.size(); ++t) received_[t][i][m] = request_.sent[t][i][m];
      return;
    }
    auto header = headers_[i];
    auto payload = payload_of(i, m);
    for (const auto& part : payload.parts) header.bytes += part.size();
    sizes_.clear();
    for (const auto& sent : request_.sent) add_sizes(sent[i][m].sizes());
    header.purpose = purpose_digest(id_.op, sizes_);
    sent_bytes_ += header.bytes;
    transport_.post({source, destination, header, std::move(payload)});
  }

  /// The tensors' own memory: it stays as it is until the exchange is over.
  Payload payload_of(size_t i, size_t m) const {
    const auto tensors = std::make_shared<std::vector<at::Tensor>>();
    Payload payload{{}, tensors};
    for (const auto& sent : request_.sent) {
      tensors->push_back(sent[i][m].contiguous());
      payload.parts.push_back(bytes_of(tensors->back()));
    }
    return payload;
  }

  void add_sizes(c10::IntArrayRef sizes) {
    sizes_.push_back(static_cast<int64_t>(sizes.size()));
    sizes_.insert(sizes_.end(), sizes.begin(), sizes.end());
  }

  MessageHeader expected(size_t i, size_t m) {
    auto header = headers_[i];
    sizes_.clear();
    for (size_t t = 0; t < received_.size(); ++t) {
      const auto sizes = request_.received_sizes(t, i, m);
      add_sizes(sizes);
      header.bytes += static_cast<uint64_t>(c10::multiply_integers(sizes)) * c10::elementSize(request_.dtype);
    }
    header.purpose = purpose_digest(id_.op, sizes_);
    return header;
  }

  /// Whether all of member m's pieces are there.
  bool take(size_t i, size_t m) {
    auto& arrival = arrivals_[i][m];
    const int rank = request_.mesh.local_ranks()[i];
    if (arrival.parts.empty()) {
      const auto header = transport_.arrived(groups_[i][m], rank);
      if (!header) return false;
      check(i, m, *header);
      make_room(i, m);
    }
    if (!transport_.receive(groups_[i][m], rank, arrival.parts)) return false;
    for (size_t t = 0; t < received_.size(); ++t) received_[t][i][m] = std::move(arrival.tensors[t]);
    return true;
  }

  void check(size_t i, size_t m, const MessageHeader& header) {
    auto mine = expected(i, m);
    if (header.purpose == 0) mine.purpose = 0;  // from a recording
    if (mine == header) return;
    if (recorder_) recorder_->disagrees_with(groups_[i][m]);
    fail<TransportError>("rank {} and rank {} disagree about a collective: {} (expected {}, got {})",
                         request_.mesh.local_ranks()[i], groups_[i][m], difference(mine, header), mine.text(),
                         header.text());
  }

  void make_room(size_t i, size_t m) {
    auto& arrival = arrivals_[i][m];
    for (size_t t = 0; t < received_.size(); ++t) {
      const bool placed = t < request_.places.size() && !request_.places[t].empty();
      arrival.tensors.push_back(placed ? request_.places[t][i][m]
                                       : at::empty(request_.received_sizes(t, i, m), request_.dtype));
      auto& tensor = arrival.tensors.back();
      arrival.parts.emplace_back(static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes());
    }
  }

  /// A member's pieces, which arrive in one message.
  struct Arrival {
    std::vector<at::Tensor> tensors;
    std::vector<MutableSpan> parts;
  };

  Exchange request_;
  Transport& transport_;
  FlightRecorder* recorder_;
  uint64_t sent_bytes_ = 0;
  const OpId id_ = op_running();
  std::vector<int64_t> sizes_;  ///< of the pieces of a message, each behind its number of dimensions
  std::vector<int> missing_;
  std::vector<RankGroup> groups_;
  std::vector<MessageHeader> headers_;
  std::vector<std::vector<Arrival>> arrivals_;
  std::vector<Pieces> received_;
};

std::vector<Pieces> exchange_messages(Exchange request, uint64_t number) {
  auto* transport = request.mesh.world().transport();
  ExchangeMachine machine(std::move(request), number);
  try {
    machine.start();
    while (!machine.advance() || transport->is_sending()) {
      machine.record_waiting();
      transport->progress();
    }
  } catch (const TransportError& error) {
    machine.give_up(error);
  }
  return machine.finish();
}

/// All ranks are here: what member m sent to me is what I take.
std::vector<Pieces> exchange_directly(const Exchange& request) {
  const auto& mesh = request.mesh;
  auto received = empty_bundle(request);
  for (size_t i = 0; i < mesh.local_count(); ++i) {
    const int rank = mesh.local_ranks()[i];
    const auto my_place = static_cast<size_t>(mesh.coordinate(rank, request.axis));
    const auto group = mesh.group(rank, request.axis);
    for (size_t t = 0; t < received.size(); ++t)
      for (size_t m = 0; m < group.size(); ++m)
        received[t][i][m] = request.sent[t][static_cast<size_t>(mesh.local_index(group[m]))][my_place];
  }
  return received;
}

/// Without values there is nothing to send: only sizes matter.
std::vector<Pieces> exchange_sizes(const Exchange& request) {
  auto received = empty_bundle(request);
  const auto options = at::TensorOptions().dtype(request.dtype).device(c10::kMeta);
  for (size_t t = 0; t < received.size(); ++t)
    for (size_t i = 0; i < received[t].size(); ++i)
      for (size_t m = 0; m < received[t][i].size(); ++m)
        received[t][i][m] = at::empty(request.received_sizes(t, i, m), options);
  return received;
}

void notify_received(Observers& observers, const CollectiveEvent& event, std::vector<Pieces>& received) {
  for (auto& pieces : received)
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int rank = event.mesh.local_ranks()[i];
      const auto group = event.mesh.group(rank, event.axis);
      for (size_t m = 0; m < group.size(); ++m)
        if (group[m] != rank) observers.notify([&](Observer& o) { o.received(event, rank, group[m], pieces[i][m]); });
    }
}

}  // namespace

std::vector<Pieces> exchange(Exchange request) {
  auto& world = request.mesh.world();
  const uint64_t number = request.mesh.next_collective();
  auto& observers = world.observers();
  const CollectiveEvent event{current_op_id(), request.mesh, request.axis, request.kind, request.dtype, number};
  if (!observers.empty()) observers.notify([&](Observer& o) { o.before_collective(event); });
  auto received = world.meta()        ? exchange_sizes(request)
                  : world.transport() ? exchange_messages(std::move(request), number)
                                      : exchange_directly(request);
  if (!observers.empty()) notify_received(observers, event, received);
  return received;
}

}  // namespace lockstep
