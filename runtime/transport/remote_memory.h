#pragma once
#include "runtime/transport/pair_memory.h"
#include "runtime/transport/stream.h"

namespace lockstep {

/// Reading the other process's tensors where they lie (process_vm_readv): one copy instead of two, and one hand-over
/// instead of many. Only where the system allows it, which a probe finds out; nobody's rights are widened for it.
class RemoteMemory {
 public:
  /// We are `side`; publishes a probe of our own memory.
  RemoteMemory(PairMemory& memory, int side);
  ~RemoteMemory() { withdraw(); }
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  /// Nothing that was lent is to be read any more; who reads it now finds out.
  void withdraw();

  /// Reads the other's probe once it is there, and lets it know whether that went well.
  void try_probe();
  /// Whether we can read the other's memory, and whether it can read ours.
  bool can_fetch() const { return can_fetch_; }
  bool can_lend() const;

  /// A number for the next payload that is lent; it has been read once fetched() is as large.
  uint64_t lend() { return ++lent_; }
  uint64_t fetched() const;

  /// Reads `from` into `to`. False if they are not equally large, or the other has withdrawn it or cannot be read.
  bool fetch(std::span<const LentPart> from, MutableSpans to);

 private:
  bool read(uint64_t address, MutableSpan to) const;

  PairMemory& memory_;
  int side_;
  uint64_t probe_;  ///< random, in our own memory
  bool tried_ = false, can_fetch_ = false;
  uint64_t lent_ = 0, fetched_ = 0;
};

}  // namespace lockstep
