#include "runtime/transport/shared_memory/free_blocks.h"

#include <iterator>

namespace lockstep {

std::optional<uint64_t> FreeBlocks::take(uint64_t bytes) {
  const auto found = by_size_.lower_bound({bytes, 0});
  if (found == by_size_.end()) return std::nullopt;
  const auto [size, start] = *found;
  remove(blocks_.find(start));
  if (size > bytes) add(start + bytes, size - bytes);
  return start;
}

void FreeBlocks::give(uint64_t start, uint64_t bytes) {
  const auto next = blocks_.lower_bound(start);
  if (next != blocks_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      remove(before);
    }
  }
  if (next != blocks_.end() && start + bytes == next->first) {
    bytes += next->second;
    remove(next);
  }
  add(start, bytes);
}

void FreeBlocks::add(uint64_t start, uint64_t bytes) {
  blocks_.emplace(start, bytes);
  by_size_.emplace(bytes, start);
}

void FreeBlocks::remove(Blocks::iterator block) {
  by_size_.erase({block->second, block->first});
  blocks_.erase(block);
}

}  // namespace lockstep
