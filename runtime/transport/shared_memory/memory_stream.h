#pragma once
#include "runtime/transport/shared_memory/pipe.h"
#include "runtime/transport/shared_memory/remote_memory.h"

namespace lockstep {

/// A pair of pipes in memory that two processes share, and beside it a socket between them: a byte on it wakes a rank
/// that sleeps, and its end tells that the other process is gone.
class MemoryStream final : public Stream {
 public:
  /// `side`: 0 for one of the two ranks, 1 for the other. Throws TransportError for memory that cannot be used.
  /// `arena`: where tensors lie that the other side may read, if there is one; it must outlive this.
  MemoryStream(FileDescriptor socket, const FileDescriptor& memory, int side, const SharedArena* arena = nullptr);

  size_t send(ConstSpans from) override;
  size_t receive(MutableSpans to) override;
  bool can_receive() const override;
  bool can_send() const override;
  bool is_memory() const override { return true; }
  bool shares_core() const override;
  bool should_lend(ConstSpans parts) const override { return remote_.should_lend(parts); }
  uint64_t lend() override { return remote_.lend(); }
  uint64_t fetched() const override { return remote_.fetched(); }
  bool can_fetch() const override { return remote_.can_fetch(); }
  bool fetch(std::span<const LentPart> from, MutableSpans to) override;
  std::optional<BorrowedPayload> borrow(std::span<const LentPart> from) override { return remote_.borrow(from); }
  bool settle() override;
  pollfd asleep(bool to_receive, bool to_send) override;
  void awake(short events) override;

 private:
  size_t write(ConstSpan from);
  size_t read(MutableSpan to);
  void wake_other();
  void take_bells();
  bool is_connected() const;
  bool fail_to_read();
  void end(const char* why);

  FileDescriptor socket_;
  MappedPair memory_;
  PipeWriter writer_;
  PipeReader reader_;
  RemoteMemory remote_;
  bool broken_ = false;  ///< nothing more is received
  SideState& mine_;
  SideState& theirs_;
};

}  // namespace lockstep
