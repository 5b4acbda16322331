#pragma once
#include <optional>

#include "runtime/transport/rendezvous/pair_memory.h"
#include "runtime/transport/shared_memory/lent_buffers.h"
#include "runtime/transport/shared_memory/shared_arena.h"
#include "runtime/transport/stream.h"

namespace lockstep {

/// Reading the other process's tensors where they lie: one copy instead of two, and one hand-over instead of many.
/// Those in its arena through a mapping, others by process_vm_readv; that only where the system allows it, which a
/// probe finds out: nobody's rights are widened for it.
class RemoteMemory {
 public:
  /// We are `side`; publishes a probe of our own memory.
  RemoteMemory(PairMemory& memory, int side, const SharedArena* arena);
  ~RemoteMemory() { withdraw(); }
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  /// Nothing that was lent is to be read any more; who reads it now finds out.
  void withdraw();

  /// Reads the other's probe once it is there, and lets it know whether that went well.
  void try_probe();
  /// Whether the other gives us its arena and we have not tried to map it. Where map() fails, because it is something
  /// else or there is no room, its tensors come in other ways.
  bool is_offered_arena() const;
  void map(const FileDescriptor& arena);

  /// Whether we can read the other's memory, and whether it had better read these parts of ours than be sent them.
  bool can_fetch() const { return can_fetch_ || theirs_; }
  bool should_lend(ConstSpans parts) const;

  /// A number for the next payload that is lent; it has been read once fetched() is as large.
  uint64_t lend() { return ++lent_; }
  uint64_t fetched() const;

  /// Reads `from` into `to`. False if they are not equally large, or the other has withdrawn it or cannot be read.
  bool fetch(std::span<const LentPart> from, MutableSpans to);
  /// `from` as it lies in the other's arena; nothing if it does not.
  std::optional<BorrowedPayload> borrow(std::span<const LentPart> from);
  /// Whether leases were dropped since the other heard of it. settle() tells it; false if it has withdrawn them.
  bool has_dropped() const { return loans_->closed() != settled_; }
  bool settle();

 private:
  /// Bytes of the other's arena; null if they are not in there.
  const std::byte* mapped(uint64_t address, uint64_t bytes) const;
  bool read(uint64_t address, MutableSpan to) const;
  bool read_by_system(uint64_t address, MutableSpan to) const;

  PairMemory& memory_;
  int side_;
  const SharedArena* arena_;                    ///< ours
  std::shared_ptr<const MappedMemory> theirs_;  ///< the other's arena,
  uint64_t their_address_ = 0;                  ///< which lies there in its own memory
  uint64_t probe_;                              ///< random, in our own memory
  bool tried_ = false, can_fetch_ = false, tried_arena_ = false;
  uint64_t lent_ = 0, settled_ = 0;
  std::shared_ptr<LentBuffers> loans_ = std::make_shared<LentBuffers>();
};

}  // namespace lockstep
