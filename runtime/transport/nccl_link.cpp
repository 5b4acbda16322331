#include "runtime/transport/nccl_link.h"

#include <nccl.h>

#include <cstring>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr cudaStream_t kDefaultStream = nullptr;

void require(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail<TransportError>("NCCL could not {}: {}", what, ncclGetErrorString(result));
}

/// Waits for one message of this size.
void receive(Transport& transport, int source, int destination, MutableSpan bytes) {
  std::optional<MessageHeader> header;
  while (!(header = transport.arrived(source, destination))) transport.progress();
  if (header->bytes != bytes.size())
    fail<TransportError>("rank {} sent rank {} no NCCL id of {} bytes, but {}", source, destination, bytes.size(),
                         header->text());
  const MutableSpan parts[] = {bytes};
  while (!transport.receive(source, destination, parts)) transport.progress();
}

ncclUniqueId agreed_id(Transport& transport, int rank, int world) {
  ncclUniqueId id{};
  const auto bytes = std::as_writable_bytes(std::span(&id, 1));
  if (rank != 0) {
    receive(transport, 0, rank, bytes);
    return id;
  }
  require(ncclGetUniqueId(&id), "make an id");
  for (int other = 1; other < world; ++other) {
    Message message{0, other, {.bytes = bytes.size()}, Payload::of(Bytes(bytes.begin(), bytes.end()))};
    transport.post(std::move(message));
  }
  while (transport.is_sending()) transport.progress();
  return id;
}

class NcclLink final : public DeviceLink {
 public:
  NcclLink(const ncclUniqueId& id, int rank, int world) {
    require(ncclCommInitRank(&communicator_, world, id, rank), "make a communicator");
  }
  /// Abort, not destroy: a rank that failed must not wait for others.
  ~NcclLink() override { ncclCommAbort(communicator_); }
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  void exchange(std::span<const DeviceSend> sends, std::span<const DeviceReceive> receives) override {
    require(ncclGroupStart(), "begin a round");
    for (const auto& [peer, parts] : sends)
      for (const auto& part : parts)
        if (!part.empty())
          require(ncclSend(part.data(), part.size(), ncclUint8, peer, communicator_, kDefaultStream), "send");
    for (const auto& [peer, parts] : receives)
      for (const auto& part : parts)
        if (!part.empty())
          require(ncclRecv(part.data(), part.size(), ncclUint8, peer, communicator_, kDefaultStream), "receive");
    require(ncclGroupEnd(), "end a round");
  }

 private:
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::string nccl_unavailable_reason() { return ""; }

std::unique_ptr<DeviceLink> make_nccl_link(Transport& headers, int rank, int world) {
  return std::make_unique<NcclLink>(agreed_id(headers, rank, world), rank, world);
}

}  // namespace lockstep
