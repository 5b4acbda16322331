#pragma once
#include <atomic>
#include <optional>

#include "runtime/transport/rendezvous/pair_memory.h"
#include "runtime/transport/transport.h"

/// The two ends of a pipe in shared memory: one writer, one reader, no lock. Each end keeps its own counter to itself
/// and only ever reads the other's, which it does not trust: a counter that claims more than a pipe holds breaks the
/// pipe, and no byte outside of it is touched whatever the memory says.
///
/// Counters are stored sequentially consistent: "my bytes are there, do you sleep?" on one side and "I sleep, are
/// there bytes?" on the other must not both be answered no.
namespace lockstep {

class PipeWriter {
 public:
  PipeWriter(PipeCounters& counters, std::array<std::byte, kPipeBytes>& bytes) : counters_(counters), bytes_(bytes) {}

  /// How many bytes fit; none if the pipe is broken.
  std::optional<size_t> space() const;
  /// REQUIRES: no more than space().
  void write(ConstSpan from);

 private:
  PipeCounters& counters_;
  std::array<std::byte, kPipeBytes>& bytes_;
  uint64_t written_ = 0;
};

class PipeReader {
 public:
  PipeReader(PipeCounters& counters, const std::array<std::byte, kPipeBytes>& bytes)
      : counters_(counters), bytes_(bytes) {}

  /// How many bytes are there; none if the pipe is broken.
  std::optional<size_t> available() const;
  /// REQUIRES: no more than available().
  void read(MutableSpan to);

 private:
  PipeCounters& counters_;
  const std::array<std::byte, kPipeBytes>& bytes_;
  uint64_t read_ = 0;
};

}  // namespace lockstep
