#pragma once
#include <chrono>
#include <deque>
#include <optional>
#include <set>

#include "runtime/transport/streams/flight_recorder.h"
#include "runtime/transport/streams/stream_message.h"

namespace lockstep {

/// One rank in this process, with a stream to every other rank: a socket, or memory shared with it. Everything happens
/// on the calling thread.
///
/// Throws TransportError when a rank that is waited for has closed its end, sends what is no message, or lets `timeout`
/// pass. What that rank said last (say_last()) is in the error. The destructor sends what is left, for up to half a
/// second, so that peers get what they wait for.
class StreamTransport final : public Transport {
 public:
  /// `streams`: one per rank; none for `rank` itself.
  StreamTransport(int rank, std::vector<std::unique_ptr<Stream>> streams, std::chrono::milliseconds timeout,
                  std::unique_ptr<FlightRecorder> recorder = {});
  ~StreamTransport() override;

  void post(Message message) override;
  std::optional<MessageHeader> arrived(int source, int destination) override;
  bool receive(int source, int destination, std::span<const MutableSpan> parts) override;
  std::optional<BorrowedPayload> borrow(int source, int destination) override;
  void settle() override;
  void progress() override;
  void send_more() override { send_all(); }
  bool is_sending() const override;
  void set_timeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }
  void say_last(std::string_view why) override;
  FlightRecorder* recorder() const override { return recorder_.get(); }

 private:
  struct Peer {
    std::unique_ptr<Stream> stream;
    std::deque<Outgoing> outgoing;
    Incoming incoming = {};
    bool missed = false;     ///< asked for in vain since progress()
    std::string last_words;  ///< as far as they have come

    bool is_sending() const { return !outgoing.empty(); }
    bool is_awaited() const { return missed || is_sending(); }
    bool has_news() const {
      return (missed && stream->can_receive()) || (is_sending() && outgoing.front().can_move(*stream));
    }
  };
  using Clock = std::chrono::steady_clock;

  /// The other end of a message to or from us.
  Peer& peer(int me, int other);
  void send_some(Peer& peer);
  void send_all();
  void note(size_t bytes);
  [[noreturn]] void fail_gone(int source) const;
  /// Throws what the last words of that rank are, once all of them are there.
  void hear(int source, size_t bytes);
  /// Asked for in vain.
  void miss(Peer& peer, int source);
  bool spin(const std::vector<Peer*>& awaited) const;
  void sleep(const std::vector<Peer*>& awaited, std::chrono::milliseconds most) const;
  void check_patience();
  std::vector<Peer*> awaited();
  void flush();

  int rank_;
  std::vector<Peer> peers_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<FlightRecorder> recorder_;
  bool moved_ = false;                            ///< whether any byte moved since progress() looked last
  std::optional<Clock::time_point> still_since_;  ///< since when progress() has seen nothing move
  Clock::time_point looked_ = {};                 ///< when progress() looked last
  std::string heard_;                             ///< why another rank has ended, and with it this one
};

}  // namespace lockstep
