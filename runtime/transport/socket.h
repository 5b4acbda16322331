#pragma once
#include <chrono>
#include <deque>
#include <optional>
#include <set>

#include "core/file_descriptor.h"
#include "runtime/transport/frame.h"

namespace lockstep {

/// One rank in this process, with one stream socket to every other rank (connect_ranks() makes them). Everything
/// happens on the calling thread, in post() and progress().
///
/// Throws TransportError when a rank that is waited for has closed its connection, sends what is no message, or lets
/// `timeout` pass. The destructor sends what is left, for up to `timeout`, so that peers get what they wait for.
class SocketTransport final : public Transport {
 public:
  /// `sockets`: one per rank, connected; none for `rank` itself.
  SocketTransport(int rank, std::vector<FileDescriptor> sockets, std::chrono::milliseconds timeout);
  ~SocketTransport() override;

  void post(Message message) override;
  bool take(int source, int destination, Message& out) override;
  void progress() override;
  bool is_sending() const override;

 private:
  struct Outgoing {
    Frame frame;
    Bytes payload;
    size_t sent = 0;  ///< of both
  };
  struct Peer {
    FileDescriptor socket;
    std::deque<Outgoing> outgoing;
    std::deque<Message> arrived;
    Frame frame{};
    size_t frame_bytes = 0;  ///< of the header that is arriving; kFrameBytes while its payload is
    Message arriving;
    std::string closed;  ///< why nothing comes any more
  };
  using Clock = std::chrono::steady_clock;

  /// Whether anything left.
  bool send_some(Peer& peer);
  /// Whether anything came.
  bool receive_some(int rank);
  bool receive_frame(int rank, Peer& peer);
  bool receive_payload(Peer& peer);
  size_t read_into(Peer& peer, std::byte* to, size_t bytes);
  /// Waits for events, for `wait` at most. Whether anything moved.
  bool exchange(std::chrono::milliseconds wait);
  void flush();
  /// The ranks that are asked for, or that do not take what is sent.
  std::set<int> awaited() const;

  int rank_;
  std::vector<Peer> peers_;
  std::chrono::milliseconds timeout_;
  std::set<int> missed_;                          ///< ranks that take() asked for in vain since something moved
  std::optional<Clock::time_point> still_since_;  ///< since when progress() has seen nothing move
};

}  // namespace lockstep
