#include "runtime/transport/shared_memory/pipe.h"

#include <algorithm>
#include <cstring>

#include "runtime/transport/shared_memory/shared_word.h"

namespace lockstep {
namespace {

/// memcpy that may be asked for nothing.
void copy(std::byte* to, const std::byte* from, size_t count) {
  if (count > 0) std::memcpy(to, from, count);
}

}  // namespace

std::optional<size_t> PipeWriter::space() const {
  const uint64_t unread = written_ - load(counters_.read);
  if (unread > kPipeBytes) return std::nullopt;
  return kPipeBytes - unread;
}

void PipeWriter::write(ConstSpan from) {
  const size_t place = written_ % kPipeBytes, first = std::min(from.size(), kPipeBytes - place);
  copy(bytes_.data() + place, from.data(), first);
  copy(bytes_.data(), from.data() + first, from.size() - first);
  written_ += from.size();
  store(counters_.written, written_);
}

std::optional<size_t> PipeReader::available() const {
  const uint64_t unread = load(counters_.written) - read_;
  if (unread > kPipeBytes) return std::nullopt;
  return unread;
}

void PipeReader::read(MutableSpan to) {
  const size_t place = read_ % kPipeBytes, first = std::min(to.size(), kPipeBytes - place);
  copy(to.data(), bytes_.data() + place, first);
  copy(to.data() + first, bytes_.data(), to.size() - first);
  read_ += to.size();
  store(counters_.read, read_);
}

}  // namespace lockstep
