#include "runtime/transport/streams/stream_transport.h"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace lockstep {
namespace {

/// How long a rank looks for news before it sleeps: about as long as it takes to be woken on another core.
constexpr std::chrono::microseconds kSpin{50};

/// MessageHeader::kind of a rank's last words, which belong to no collective.
constexpr uint8_t kLastWords = 0xff;
constexpr size_t kMostLastWords = 400;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

StreamTransport::StreamTransport(int rank, std::vector<std::unique_ptr<Stream>> streams,
                                 std::chrono::milliseconds timeout, std::unique_ptr<FlightRecorder> recorder)
    : rank_(rank), peers_(streams.size()), timeout_(timeout), recorder_(std::move(recorder)) {
  for (size_t i = 0; i < streams.size(); ++i) peers_[i].stream = std::move(streams[i]);
}

/// Streams end before what they were to send.
StreamTransport::~StreamTransport() {
  if (recorder_) recorder_->leave();
  flush();
  for (auto& peer : peers_) peer.stream.reset();
}

StreamTransport::Peer& StreamTransport::peer(int me, int other) {
  LOCKSTEP_CHECK_EQ(me, rank_);
  auto& found = peers_.at(static_cast<size_t>(other));
  LOCKSTEP_CHECK(found.stream, "rank {} has no stream to rank {}", rank_, other);
  return found;
}

void StreamTransport::post(Message message) {
  auto& to = peer(message.source, message.destination);
  still_since_.reset();  // a new wait
  to.outgoing.emplace_back(std::move(message));
  send_some(to);
}

std::optional<MessageHeader> StreamTransport::arrived(int source, int destination) {
  auto& from = peer(destination, source);
  note(from.incoming.receive_frame(*from.stream));
  if (!from.incoming.has_frame(*from.stream)) {
    miss(from, source);
    return std::nullopt;
  }
  const auto header = from.incoming.header(*from.stream);
  const bool is_last = header && header->kind == kLastWords;
  if (!header || (is_last && header->bytes > kMostLastWords))
    fail<TransportError>("rank {} sent rank {} what is no message", source, rank_);
  if (!is_last) return header;
  hear(source, header->bytes);
  return std::nullopt;
}

void StreamTransport::hear(int source, size_t bytes) {
  auto& words = peer(rank_, source).last_words;
  words.resize(bytes);
  const MutableSpan parts[] = {std::as_writable_bytes(std::span(words))};
  if (!receive(source, rank_, parts)) return;
  heard_ = words;
  fail<TransportError>("rank {} waits for rank {}: {}", rank_, source, heard_);
}

/// What ended this rank may be another's end: that one's words are passed on.
void StreamTransport::say_last(std::string_view why) {
  const auto own = fmt::format("rank {} ended by an error: {}", rank_, why.substr(0, why.find('\n')));
  const auto text = (heard_.empty() ? own : heard_).substr(0, kMostLastWords);
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t other = 0; other < peers_.size(); ++other) {
    if (!peers_[other].stream) continue;
    MessageHeader header;
    header.kind = kLastWords, header.bytes = bytes.size();
    post({rank_, static_cast<int>(other), header, Payload::of({bytes.begin(), bytes.end()})});
  }
}

bool StreamTransport::receive(int source, int destination, std::span<const MutableSpan> parts) {
  auto& from = peer(destination, source);
  note(from.incoming.receive_payload(*from.stream, parts));
  if (!from.incoming.is_complete(*from.stream)) {
    miss(from, source);
    return false;
  }
  if (from.incoming.is_damaged(*from.stream)) fail_damaged(source, rank_, *from.incoming.header(*from.stream));
  from.incoming.restart();
  return true;
}

std::optional<BorrowedPayload> StreamTransport::borrow(int source, int destination) {
  auto& from = peer(destination, source);
  auto loan = from.incoming.borrow(*from.stream);
  if (!loan) return loan;
  note(1);
  from.incoming.restart();
  return loan;
}

void StreamTransport::settle() {
  for (size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i].stream && !peers_[i].stream->settle()) fail_gone(static_cast<int>(i));
}

void StreamTransport::fail_gone(int source) const {
  fail<TransportError>("rank {} waits for rank {}, whose connection is gone: {}", rank_, source,
                       peers_[static_cast<size_t>(source)].stream->closed());
}

void StreamTransport::miss(Peer& peer, int source) {
  if (!peer.stream->closed().empty() && !peer.stream->can_receive()) fail_gone(source);
  peer.missed = true;
}

void StreamTransport::note(size_t bytes) { moved_ |= bytes > 0; }

bool StreamTransport::is_sending() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.is_sending(); });
}

/// As much as the stream takes now; nothing is left for one that is closed.
void StreamTransport::send_some(Peer& peer) {
  while (peer.is_sending()) {
    note(peer.outgoing.front().send(*peer.stream));
    if (!peer.outgoing.front().is_sent(*peer.stream)) break;
    peer.outgoing.pop_front();
    note(1);  // that it was fetched is news, too
  }
  if (!peer.stream->closed().empty()) peer.outgoing.clear();
}

void StreamTransport::send_all() {
  for (auto& peer : peers_)
    if (peer.is_sending()) send_some(peer);
}

std::vector<StreamTransport::Peer*> StreamTransport::awaited() {
  std::vector<Peer*> result;
  for (auto& peer : peers_)
    if (peer.is_awaited()) result.push_back(&peer);
  return result;
}

void StreamTransport::progress() {
  constexpr std::chrono::milliseconds kPatience{100};
  const auto waiting = awaited();
  send_all();
  check_patience();
  if (!std::exchange(moved_, false) && !spin(waiting)) sleep(waiting, std::min(kPatience, timeout_));
  for (auto& peer : peers_) peer.missed = false;
}

/// Whether there is news from one of them, soon. Who needs our core for it gets it.
bool StreamTransport::spin(const std::vector<Peer*>& awaited) const {
  const auto any = [&](const auto& holds) { return std::any_of(awaited.begin(), awaited.end(), holds); };
  const bool yields = any([](const Peer* peer) { return peer->stream->shares_core(); });
  const auto end = Clock::now() + kSpin;
  do {
    for (const auto* peer : awaited) peer->stream->look(peer->missed, peer->is_sending());
    if (any([](const Peer* peer) { return peer->has_news(); })) return true;
    if (yields)
      ::sched_yield();
    else
      pause();
  } while (Clock::now() < end);
  return false;
}

void StreamTransport::sleep(const std::vector<Peer*>& awaited, std::chrono::milliseconds most) const {
  std::vector<pollfd> events;
  events.reserve(awaited.size());
  for (const auto* peer : awaited) events.push_back(peer->stream->asleep(peer->missed, peer->is_sending()));
  if (events.empty()) return;
  const bool news = std::any_of(awaited.begin(), awaited.end(), [](const Peer* peer) { return peer->has_news(); });
  const int count = ::poll(events.data(), events.size(), news ? 0 : static_cast<int>(most.count()));
  for (size_t i = 0; i < events.size(); ++i) awaited[i]->stream->awake(count > 0 ? events[i].revents : short{0});
}

/// A rank that has not looked for long was busy itself: its wait begins now.
void StreamTransport::check_patience() {
  constexpr std::chrono::seconds kBusy{1};
  const auto now = Clock::now();
  if (moved_ || !still_since_ || now - looked_ > kBusy) still_since_ = now;
  looked_ = now;
  if (now - *still_since_ <= timeout_) return;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i].is_awaited()) ranks.push_back(i);
  fail<TransportError>(
      "rank {} has waited {:.0f} s for rank {}, which sends and takes nothing: it is stopped, or busy elsewhere", rank_,
      std::chrono::duration<double>(timeout_).count(), fmt::join(ranks, ", "));
}

/// Something is left only when this rank has failed. Others may have failed, too, and take nothing any more: nobody is
/// waited for long. What was lent and not fetched is withdrawn when its stream ends.
void StreamTransport::flush() {
  constexpr std::chrono::milliseconds kLast{500};
  const auto end = Clock::now() + std::min(timeout_, kLast);
  for (auto& peer : peers_) peer.missed = false;
  while (is_sending() && Clock::now() < end) {
    sleep(awaited(), std::chrono::milliseconds{20});
    send_all();
  }
}

}  // namespace lockstep
