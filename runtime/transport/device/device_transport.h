#pragma once
#include <deque>
#include <map>
#include <set>

#include "runtime/transport/device/device_link.h"
#include "runtime/transport/device/round_watch.h"
#include "runtime/transport/wrapper.h"

namespace lockstep {

/// Messages whose bytes are in device memory. Their headers go over another transport first; bytes move, over a link
/// between the devices, once all ranks of the group have announced theirs and agree. So that no two ranks wait for each
/// other, rounds of bytes begin in the order in which this rank has posted them: all ranks post alike.
///
/// A round that does not end within the timeout ends the run: every later call throws TransportError that names it.
///
/// Serves one rank, for collectives in which whoever sends to a rank also receives from it.
class DeviceTransport final : public TransportWrapper {
 public:
  DeviceTransport(std::shared_ptr<Transport> headers, std::unique_ptr<DeviceLink> link,
                  std::chrono::milliseconds timeout)
      : TransportWrapper(std::move(headers)), link_(std::move(link)), watch_(*link_, timeout) {}

  /// Announces the message. Its bytes are read when the round begins.
  void post(Message message) override;
  std::optional<MessageHeader> arrived(int source, int destination) override;
  /// True once the round has begun: later work of the device finds the bytes in place.
  bool receive(int source, int destination, std::span<const MutableSpan> parts) override;
  std::optional<BorrowedPayload> borrow(int, int) override { return std::nullopt; }
  void progress() override;
  void send_more() override;
  void set_timeout(std::chrono::milliseconds timeout) override;

 private:
  /// Of one message; how many bytes it has comes behind its header.
  struct Announcement {
    MessageHeader header;
    Bytes size = Bytes(sizeof(uint64_t));
    bool is_whole = false;
  };
  struct Round {
    MessageHeader header;  ///< bytes and purpose are those of the first message
    std::vector<DeviceSend> sends;
    std::vector<std::shared_ptr<const void>> owners;
    std::vector<DeviceReceive> receives;
    bool has_begun = false;
    std::set<int> taken;  ///< whose bytes receive() has given

    bool holds(const MessageHeader& message) const;
    bool awaits(int source) const;
  };

  Round* next_round(const MessageHeader& header);
  void begin(Round& round);

  std::unique_ptr<DeviceLink> link_;
  RoundWatch watch_;                       ///< of the link
  std::map<int, Announcement> announced_;  ///< by source: what has been announced and not received
  std::deque<Round> rounds_;               ///< oldest first
};

}  // namespace lockstep
