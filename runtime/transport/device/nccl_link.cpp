#include "runtime/transport/device/nccl_link.h"

#include <nccl.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr cudaStream_t kDefaultStream = nullptr;

void require(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail<TransportError>("NCCL could not {}: {}", what, ncclGetErrorString(result));
}

void require(cudaError_t result, const char* what) {
  if (result != cudaSuccess) fail<TransportError>("CUDA could not {}: {}", what, cudaGetErrorString(result));
}

/// Marks on the stream behind each round, which tell how many the device has passed.
class RoundMarks {
 public:
  ~RoundMarks() {
    for (auto* mark : ahead_) cudaEventDestroy(mark);
    for (auto* mark : spare_) cudaEventDestroy(mark);
  }
  RoundMarks() = default;
  RoundMarks(const RoundMarks&) = delete;
  RoundMarks& operator=(const RoundMarks&) = delete;

  /// Behind what the stream has been given.
  void set() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty())
      require(cudaEventCreateWithFlags(&spare_.emplace_back(), cudaEventDisableTiming), "make an event");
    require(cudaEventRecord(spare_.back(), kDefaultStream), "mark the end of a round");
    ahead_.push_back(spare_.back());
    spare_.pop_back();
  }

  uint64_t passed() {
    const std::lock_guard lock(mutex_);
    for (; !ahead_.empty(); ++passed_) {
      const auto state = cudaEventQuery(ahead_.front());
      if (state == cudaErrorNotReady) break;
      require(state, "end a round");
      spare_.push_back(ahead_.front());
      ahead_.pop_front();
    }
    return passed_;
  }

 private:
  std::mutex mutex_;
  std::deque<cudaEvent_t> ahead_;   ///< oldest first
  std::vector<cudaEvent_t> spare_;  ///< to be used again
  uint64_t passed_ = 0;
};

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
    require(cudaGetDevice(&device_), "tell which GPU is in use");
    require(ncclCommInitRank(&communicator_, world, id, rank), "make a communicator");
  }
  /// Abort, not destroy: a rank that failed must not wait for others.
  ~NcclLink() override { abort(); }
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  void exchange(std::span<const DeviceSend> sends, std::span<const DeviceReceive> receives) override {
    if (is_aborted_) fail<TransportError>("NCCL's communicator was aborted");
    require(ncclGroupStart(), "begin a round");
    for (const auto& [peer, parts] : sends)
      for (const auto& part : parts)
        if (!part.empty())
          require(ncclSend(part.data(), part.size(), ncclUint8, peer, communicator_, kDefaultStream), "send");
    for (const auto& [peer, parts] : receives)
      for (const auto& part : parts)
        if (!part.empty())
          require(ncclRecv(part.data(), part.size(), ncclUint8, peer, communicator_, kDefaultStream), "receive");
    require(ncclGroupEnd(), "hand over a round");
    marks_.set();
  }

  /// On the thread of who watches, which uses another GPU until it is told.
  uint64_t ended_rounds() override {
    require(cudaSetDevice(device_), "use the GPU of the link");
    ncclResult_t state = ncclSuccess;
    require(ncclCommGetAsyncError(communicator_, &state), "tell its state");
    if (state != ncclSuccess && state != ncclInProgress) require(state, "go on with a round");
    return marks_.passed();
  }

  /// Whatever it answers, nothing can be done about it.
  void abort() override {
    if (!is_aborted_.exchange(true)) ncclCommAbort(communicator_);
  }

 private:
  int device_ = 0;
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> is_aborted_ = false;
  RoundMarks marks_;
};

}  // namespace

std::string nccl_unavailable_reason() { return ""; }

std::unique_ptr<DeviceLink> make_nccl_link(Transport& headers, int rank, int world) {
  return std::make_unique<NcclLink>(agreed_id(headers, rank, world), rank, world);
}

}  // namespace lockstep
