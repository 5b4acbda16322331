#include "runtime/transport/process_group/gloo_streams.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/transport/rendezvous/handshake.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

/// Sends these bytes and receives as many. Whether all came in time.
bool exchange(Stream& stream, ConstSpan mine, MutableSpan theirs, Clock::time_point end) {
  while (!mine.empty() || !theirs.empty()) {
    const ConstSpan from[] = {mine};
    const MutableSpan to[] = {theirs};
    mine = mine.subspan(stream.send(from));
    theirs = theirs.subspan(stream.receive(to));
    if (!stream.closed().empty() || Clock::now() >= end) return mine.empty() && theirs.empty();
    auto event = stream.asleep(true, false);
    if (!theirs.empty() && !stream.can_receive()) stream.awake(::poll(&event, 1, 20) > 0 ? event.revents : short{0});
  }
  return true;
}

struct Handshake {
  int low, high;
  Nonce of_low, of_high;

  Proof proof(const Membership& me, bool of_low_rank) const {
    return prove(me.token, of_low_rank ? "low over Gloo" : "high over Gloo", {me.world, low, of_low}, high, of_high);
  }
};

}  // namespace

void prove_membership(Stream& stream, const Membership& me, int other, Clock::time_point end) {
  const bool is_low = me.rank < other;
  const auto mine = fresh_nonce();
  Nonce theirs{};
  const bool met = exchange(stream, mine, theirs, end);
  const Handshake both{std::min(me.rank, other), std::max(me.rank, other), is_low ? mine : theirs,
                       is_low ? theirs : mine};
  Proof got{};
  if (!met || !exchange(stream, both.proof(me, is_low), got, end) || !equal(got, both.proof(me, !is_low)))
    fail<TransportError>("rank {} met rank {} over Gloo, which does not prove that it belongs to this job{}{}", me.rank,
                         other, stream.closed().empty() ? "" : ": ", stream.closed());
}

std::vector<std::unique_ptr<Stream>> gloo_streams(const Membership& me, const c10::intrusive_ptr<c10d::Store>& store,
                                                  const std::string& host) {
  const auto shared = std::make_shared<SharedGroup>(gloo_group(store, me.rank, me.world, host, me.timeout));
  const auto end = Clock::now() + me.timeout;  // all have come
  std::vector<std::unique_ptr<Stream>> streams(static_cast<size_t>(me.world));
  for (int other = 0; other < me.world; ++other)
    if (other != me.rank) streams[static_cast<size_t>(other)] = std::make_unique<GroupStream>(shared, other);
  for (int other = 0; other < me.world; ++other)
    if (const auto& stream = streams[static_cast<size_t>(other)]) prove_membership(*stream, me, other, end);
  return streams;
}

}  // namespace lockstep
