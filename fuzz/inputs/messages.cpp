#include <algorithm>

#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "runtime/transport/streams/stream_transport.h"

namespace lockstep {
namespace {

/// Gives the input in pieces, then is closed; takes everything.
class InputStream final : public Stream {
 public:
  InputStream(ConstSpan input, size_t most) : rest_(input), most_(most) {}
  size_t send(ConstSpans from) override {
    size_t total = 0;
    for (const auto& span : from) total += span.size();
    return total;
  }
  size_t receive(MutableSpans to) override {
    if (rest_.empty()) close("the input ends");
    size_t total = 0;
    for (const auto& span : to) {
      const size_t count = std::min({span.size(), rest_.size(), most_ - total});
      std::copy_n(rest_.data(), count, span.data());
      rest_ = rest_.subspan(count);
      total += count;
    }
    return total;
  }
  bool can_receive() const override { return !rest_.empty(); }
  bool can_send() const override { return true; }
  bool is_memory() const override { return false; }
  pollfd asleep(bool, bool) override { return {-1, 0, 0}; }
  void awake(short) override {}

 private:
  ConstSpan rest_;
  size_t most_;
};

/// Reads messages as a collective does, until there is an error: the input ends at the latest.
void read_all(StreamTransport& transport) {
  for (;;) {
    const auto header = transport.arrived(1, 0);
    if (!header) continue;
    if (header->bytes > 4096) return;  // not what a receiver expects
    Bytes content(header->bytes);
    const size_t half = content.size() / 2;
    const MutableSpan parts[] = {MutableSpan(content).first(half), MutableSpan(content).subspan(half)};
    while (!transport.receive(1, 0, parts)) {
    }
    const ConstSpan whole[] = {content};
    fuzz::require(checksum_of({{whole[0]}, nullptr}) == checksum_of({{parts[0], parts[1]}, nullptr}), "all is there");
  }
}

}  // namespace

/// Whatever comes on a connection ends in messages that are whole, or in a TransportError. The first byte says how
/// large the pieces are in which it comes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<std::unique_ptr<Stream>> streams(2);
  streams[1] = std::make_unique<InputStream>(std::as_bytes(std::span(data + 1, size - 1)), size_t{1} + data[0]);
  StreamTransport transport(0, std::move(streams), std::chrono::milliseconds{1000});
  try {
    read_all(transport);
  } catch (const TransportError&) {
  }
  return 0;
}

}  // namespace lockstep
