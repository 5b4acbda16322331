#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/files/pass_descriptor.h"
#include "fuzz/inputs/target.h"
#include "runtime/transport/shared_memory/memory_stream.h"

namespace lockstep {
namespace {

/// An arena that the other side gives, of zeros.
constexpr size_t kArenaBytes = 1 << 13;

/// One step: the other side stores any value in any of the shared words, then this side moves some bytes.
struct Step {
  uint8_t word, action;
  uint16_t bytes;
  uint64_t value;
};

void store(PairMemory& memory, const Step& step) {
  auto& theirs = memory.sides[1];
  switch (const int word = step.word % 8; word) {
    case 0:
    case 1:
      memory.counters[word].written = step.value;
      return;
    case 2:
    case 3:
      memory.counters[word - 2].read = step.value;
      return;
    case 4:
      memory.sides[step.value % 2].asleep = static_cast<uint32_t>(step.value >> 1);
      return;
    case 5:
      theirs.has_arena = theirs.maps = theirs.withdrawn = static_cast<uint32_t>(step.value);
      return;
    case 6:
      theirs.arena_address = step.value;
      theirs.arena_bytes = step.bytes;
      return;
    default:
      return;
  }
}

void act(MemoryStream& stream, const Step& step, MutableSpan buffer) {
  const auto part = buffer.first(step.bytes);
  const ConstSpan out[] = {part};
  const MutableSpan in[] = {part};
  const size_t moved = step.action % 2 == 0 ? stream.send(out) : stream.receive(in);
  fuzz::require(moved <= part.size(), "no more is moved than was asked for");
  const LentPart lent[] = {{step.value, step.bytes}};
  if (const auto borrowed_bytes = stream.borrow(lent))
    for (const auto& seen : borrowed_bytes->parts)
      fuzz::require(std::count(seen.begin(), seen.end(), std::byte{1}) == 0, "zeros");
  stream.settle();
  stream.asleep(true, true);
  stream.awake(POLLIN);
}

}  // namespace

/// Whatever a rank that has gone mad does to the memory that it shares with us: no byte outside of it is touched.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto memory = create_pair_memory();
  const MappedPair other(memory);
  other->counters = {};
  other->sides = {};
  int ends[2];
  fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "two sockets");
  const FileDescriptor peer(ends[1]);
  MemoryStream stream(FileDescriptor(ends[0]), memory, 0);
  static const auto arena = create_sealed_memory(kArenaBytes);
  if (size > 0 && data[0] % 2 == 0) {
    const std::byte bell{};
    fuzz::require(send_with(peer, std::span(&bell, 1), data[0] % 4 == 0 ? arena : memory), "a bell");
  }
  std::vector<std::byte> buffer(1 << 16);
  for (; size >= sizeof(Step); data += sizeof(Step), size -= sizeof(Step)) {
    Step step;
    std::memcpy(&step, data, sizeof step);
    store(*other, step);
    act(stream, step, buffer);
  }
  return 0;
}

}  // namespace lockstep
