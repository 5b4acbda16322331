#include "runtime/exchange/message_exchange.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/transport/streams/flight_recorder.h"

namespace lockstep {
namespace {

/// Part t of what another rank lends, to be read only; not defined if it has another size.
at::Tensor borrowed(const BorrowedPayload& borrowed_bytes, size_t t, at::IntArrayRef sizes,
                    const at::TensorOptions& options) {
  const auto bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * options.dtype().itemsize();
  if (t >= borrowed_bytes.parts.size() || borrowed_bytes.parts[t].size() != bytes) return {};
  if (bytes == 0) return at::empty(sizes, options);
  auto* start = const_cast<std::byte*>(borrowed_bytes.parts[t].data());
  return at::from_blob(
      start, sizes, [lease = borrowed_bytes.lease](void*) {}, options);
}

}  // namespace

std::vector<Pieces> empty_bundle(const Exchange& request) {
  const auto members = static_cast<size_t>(request.mesh.axis_size(request.axis));
  return std::vector<Pieces>(request.sent.size(), Pieces(request.mesh.local_count(), std::vector<at::Tensor>(members)));
}

MessageExchange::MessageExchange(Exchange request, uint64_t number, bool may_borrow)
    : request_(std::move(request)),
      transport_(*request_.mesh.world().transport()),
      recorder_(request_.mesh.local_count() == 1 ? transport_.recorder() : nullptr),
      may_borrow_(may_borrow),
      received_(empty_bundle(request_)) {
  const auto purpose = purpose_digest(id_.op, request_.subject);
  for (const int rank : request_.mesh.local_ranks()) {
    groups_.push_back(request_.mesh.group(rank, request_.axis));
    arrivals_.emplace_back(groups_.back().size());
    headers_.push_back({number, purpose, static_cast<uint8_t>(request_.kind), static_cast<int8_t>(request_.dtype),
                        group_digest(groups_.back()), 0});
    for (size_t m = 0; m < groups_.back().size(); ++m) missing_pieces_ += takes_piece(m) ? 1 : 0;
  }
}

template <class Action>
void MessageExchange::guarded(const Action& action) {
  try {
    action();
  } catch (const TransportError& error) {
    give_up(error);
  }
}

/// The error that ended it, and where that was.
void MessageExchange::give_up(const TransportError& error) {
  const auto text = fmt::format("{}; in collective {} ({} on {}) of {}", error.what(), headers_.at(0).collective,
                                to_text(request_.kind), axis_name(), id_.text());
  announce();
  if (recorder_) recorder_->give_up(text, missing());
  throw TransportError(text);
}

void MessageExchange::announce() {
  if (std::exchange(announced_, true) || !recorder_) return;
  recorder_->begin(id_, axis_name(), headers_[0], c10::toString(request_.dtype));
  recorder_->sends(sent_bytes_);
}

void MessageExchange::start() {
  guarded([this] {
    for (size_t i = 0; i < groups_.size(); ++i)
      for (size_t n = 0; n < groups_[i].size(); ++n) {
        const size_t m = (first_behind(i) + n) % groups_[i].size();
        if (sends_to(i, m)) make(i, m), post(i, m);
      }
  });
  for (size_t i = 0; i < groups_.size(); ++i)
    for (size_t m = 0; m < groups_[i].size(); ++m)
      if (is_own(i, m) && !is_transfer()) make(i, m), keep_own(i, m);
  if (announced_ && recorder_) recorder_->sends(sent_bytes_);
}

void MessageExchange::advance(Earlier earlier) {
  guarded([&] {
    for (size_t i = 0; i < groups_.size(); ++i)
      for (size_t m = 0; m < groups_[i].size(); ++m) {
        const auto waits = [&](const auto& other) {
          return other->takes_from(groups_[i][m], request_.mesh.local_ranks()[i]);
        };
        if (is_missing(i, m) && !is_own(i, m) && std::none_of(earlier.begin(), earlier.end(), waits)) take(i, m);
      }
  });
}

bool MessageExchange::takes_from(int source, int destination) const {
  const auto index = request_.mesh.local_index(destination);
  if (index < 0) return false;
  const auto i = static_cast<size_t>(index);
  for (size_t m = 0; m < groups_[i].size(); ++m)
    if (groups_[i][m] == source) return is_missing(i, m);
  return false;
}

void MessageExchange::wait() {
  if (recorder_) recorder_->waits_for(missing());
  guarded([this] { transport_.progress(); });
}

void MessageExchange::settle() {
  guarded([this] { transport_.settle(); });
}

void MessageExchange::end() {
  if (recorder_) recorder_->end();
}

/// Whom this rank waits for: nobody if others only have to take what it sent.
const std::vector<int>& MessageExchange::missing() {
  missing_.clear();
  for (size_t m = 0; !is_complete() && m < groups_[0].size(); ++m)
    if (is_missing(0, m)) missing_.push_back(groups_[0][m]);
  return missing_;
}

/// Ranks do not all send to the same one first.
size_t MessageExchange::first_behind(size_t i) const {
  const auto own = std::ranges::find(groups_[i], request_.mesh.local_ranks()[i]);
  return static_cast<size_t>(own - groups_[i].begin()) + 1;
}

void MessageExchange::make(size_t i, size_t m) {
  for (size_t t = 0; request_.make && t < request_.sent.size(); ++t) request_.sent[t][i][m] = request_.make(t, i, m);
}

void MessageExchange::post(size_t i, size_t m) {
  auto header = headers_[i];
  auto payload = payload_of(i, m);
  for (const auto& part : payload.parts) header.bytes += part.size();
  sent_bytes_ += header.bytes;
  transport_.post({request_.mesh.local_ranks()[i], groups_[i][m], header, std::move(payload)});
}

/// While what was sent is on its way.
void MessageExchange::keep_own(size_t i, size_t m) {
  for (size_t t = 0; t < received_.size(); ++t)
    received_[t][i][m] =
        has_destination(t) ? request_.destinations[t][i][m].copy_(request_.sent[t][i][m]) : request_.sent[t][i][m];
  --missing_pieces_;
}

/// The tensors' own memory: it stays as it is until the exchange is over.
Payload MessageExchange::payload_of(size_t i, size_t m) const {
  const auto tensors = std::make_shared<std::vector<at::Tensor>>();
  Payload payload{{}, tensors};
  for (const auto& sent : request_.sent) {
    tensors->push_back(sent[i][m].contiguous());
    payload.parts.push_back(bytes_of(tensors->back()));
  }
  return payload;
}

MessageHeader MessageExchange::expected(size_t i, size_t m) const {
  auto header = headers_[i];
  for (size_t t = 0; t < received_.size(); ++t) {
    const auto elements = c10::multiply_integers(request_.received_sizes(t, i, m));
    header.bytes += static_cast<uint64_t>(elements) * c10::elementSize(request_.dtype);
  }
  return header;
}

/// Member m's pieces, if all of them are there.
void MessageExchange::take(size_t i, size_t m) {
  auto& arrival = arrivals_[i][m];
  const int rank = request_.mesh.local_ranks()[i];
  if (arrival.parts.empty()) {
    const auto header = transport_.arrived(groups_[i][m], rank);
    if (!header) return;
    check(i, m, *header);
    if (borrow(i, m)) return;
    make_room(i, m);
  }
  if (!transport_.receive(groups_[i][m], rank, arrival.parts)) return;
  for (size_t t = 0; t < received_.size(); ++t) received_[t][i][m] = std::move(arrival.tensors[t]);
  --missing_pieces_;
}

void MessageExchange::check(size_t i, size_t m, const MessageHeader& header) {
  const auto mine = expected(i, m);
  if (mine == header) return;
  announce();
  if (recorder_) recorder_->disagrees_with(groups_[i][m]);
  fail<TransportError>("rank {} and rank {} disagree about a collective: {} (expected {}, got {})",
                       request_.mesh.local_ranks()[i], groups_[i][m], difference(mine, header), mine.text(),
                       header.text());
}

/// Not what has a place to go to.
bool MessageExchange::borrow(size_t i, size_t m) {
  for (size_t t = 0; t < received_.size(); ++t)
    if (!may_borrow_ || has_destination(t)) return false;
  const auto borrowed_bytes = transport_.borrow(groups_[i][m], request_.mesh.local_ranks()[i]);
  if (!borrowed_bytes) return false;
  has_borrowed_ = true;
  for (size_t t = 0; t < received_.size(); ++t) {
    auto& piece = received_[t][i][m];
    piece = borrowed(*borrowed_bytes, t, request_.received_sizes(t, i, m), request_.sent[t][i][m].options());
    if (!piece.defined())
      fail<TransportError>("rank {} sent rank {} the bytes that it expects, but cut into other tensors", groups_[i][m],
                           request_.mesh.local_ranks()[i]);
  }
  --missing_pieces_;
  return true;
}

void MessageExchange::make_room(size_t i, size_t m) {
  auto& arrival = arrivals_[i][m];
  for (size_t t = 0; t < received_.size(); ++t) {
    arrival.tensors.push_back(has_destination(t)
                                  ? request_.destinations[t][i][m]
                                  : at::empty(request_.received_sizes(t, i, m), request_.sent[t][i][m].options()));
    auto& tensor = arrival.tensors.back();
    arrival.parts.emplace_back(static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes());
  }
}

}  // namespace lockstep
