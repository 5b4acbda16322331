#include "runtime/collective.h"

#include <ATen/Functions.h>
#include <xxhash.h>

#include <cstring>

#include "core/error.h"
#include "runtime/observer.h"
#include "runtime/transport/transport.h"
#include "runtime/world.h"

namespace lockstep {
namespace {

Bytes to_bytes(const at::Tensor& tensor) {
  const auto plain = tensor.contiguous();
  Bytes bytes(plain.nbytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), plain.const_data_ptr(), bytes.size());
  return bytes;
}

at::Tensor from_bytes(const Bytes& bytes, c10::IntArrayRef sizes, c10::ScalarType dtype) {
  auto tensor = at::empty(sizes, at::TensorOptions().dtype(dtype));
  LOCKSTEP_CHECK_EQ(bytes.size(), tensor.nbytes());
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

/// The collective as a resumable state machine over a transport: posts everything, then takes until all is there.
class ExchangeMachine {
 public:
  ExchangeMachine(Exchange request, uint64_t number) : request_(std::move(request)), world_(request_.mesh.world()) {
    for (const int rank : world_.local_ranks()) {
      groups_.push_back(request_.mesh.group(rank, request_.axis));
      headers_.push_back({number, 0, static_cast<uint8_t>(request_.kind), static_cast<int8_t>(request_.dtype),
                          XXH3_64bits(groups_.back().data(), groups_.back().size() * sizeof(int)), 0});
      received_.emplace_back(groups_.back().size());
    }
  }

  void start() {
    for (size_t i = 0; i < groups_.size(); ++i)
      for (size_t m = 0; m < groups_[i].size(); ++m) post(i, m);
  }

  /// Takes what has arrived; true once nothing is missing.
  bool advance() {
    bool done = true;
    for (size_t i = 0; i < groups_.size(); ++i)
      for (size_t m = 0; m < groups_[i].size(); ++m)
        if (!received_[i][m].defined()) done &= take(i, m);
    return done;
  }

  Pieces finish() { return std::move(received_); }

 private:
  void post(size_t i, size_t m) {
    const int source = world_.local_ranks()[i];
    Message message{source, groups_[i][m], headers_[i], to_bytes(request_.sent[i][m])};
    message.header.bytes = message.payload.size();
    if (message.destination == source)
      received_[i][m] = request_.sent[i][m];
    else
      world_.transport()->post(std::move(message));
  }

  bool take(size_t i, size_t m) {
    Message message;
    const int rank = world_.local_ranks()[i];
    if (!world_.transport()->take(groups_[i][m], rank, message)) return false;
    const auto sizes = request_.received_sizes(i, m);
    auto expected = headers_[i];
    expected.bytes = static_cast<uint64_t>(c10::multiply_integers(sizes)) * c10::elementSize(request_.dtype);
    if (expected != message.header)
      fail<TransportError>("rank {} and rank {} disagree about a collective: {} (expected {}, got {})", rank,
                           groups_[i][m], difference(expected, message.header), expected.text(),
                           message.header.text());
    received_[i][m] = from_bytes(message.payload, sizes, request_.dtype);
    return true;
  }

  Exchange request_;
  World& world_;
  std::vector<RankGroup> groups_;
  std::vector<MessageHeader> headers_;
  Pieces received_;
};

Pieces exchange_messages(Exchange request, uint64_t number) {
  auto* transport = request.mesh.world().transport();
  ExchangeMachine machine(std::move(request), number);
  machine.start();
  while (!machine.advance()) transport->progress();
  return machine.finish();
}

/// All ranks are here: what member m sent to me is what I take.
Pieces exchange_directly(const Exchange& request) {
  const auto& world = request.mesh.world();
  Pieces received(request.sent.size());
  for (size_t i = 0; i < received.size(); ++i) {
    const int rank = world.local_ranks()[i];
    const auto my_place = static_cast<size_t>(request.mesh.coordinate(rank, request.axis));
    for (const int member : request.mesh.group(rank, request.axis))
      received[i].push_back(request.sent[static_cast<size_t>(world.local_index(member))][my_place]);
  }
  return received;
}

/// Without values there is nothing to send: only sizes matter.
Pieces exchange_sizes(const Exchange& request) {
  Pieces received(request.sent.size());
  for (size_t i = 0; i < received.size(); ++i)
    for (size_t m = 0; m < static_cast<size_t>(request.mesh.axis_size(request.axis)); ++m)
      received[i].push_back(
          at::empty(request.received_sizes(i, m), at::TensorOptions().dtype(request.dtype).device(c10::kMeta)));
  return received;
}

void notify_received(Observers& observers, const CollectiveEvent& event, Pieces& received) {
  for (size_t i = 0; i < received.size(); ++i) {
    const int rank = event.mesh.world().local_ranks()[i];
    const auto group = event.mesh.group(rank, event.axis);
    for (size_t m = 0; m < group.size(); ++m)
      if (group[m] != rank)
        observers.notify([&](Observer& o) { o.received(event, rank, group[m], received[i][m]); });
  }
}

}  // namespace

Pieces exchange(Exchange request) {
  auto& world = request.mesh.world();
  const uint64_t number = world.next_collective();
  auto& observers = world.observers();
  const CollectiveEvent event{current_op_id(), request.mesh, request.axis, request.kind, request.dtype, number};
  if (!observers.empty()) observers.notify([&](Observer& o) { o.before_collective(event); });
  Pieces received = world.meta()        ? exchange_sizes(request)
                    : world.transport() ? exchange_messages(std::move(request), number)
                                        : exchange_directly(request);
  if (!observers.empty()) notify_received(observers, event, received);
  return received;
}

}  // namespace lockstep
