#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep {

/// The numbers are part of the format of recordings and of what travels between processes.
enum class CollectiveKind : uint8_t { kAllGather, kAllReduce, kReduceScatter, kAllToAll, kTransfer };
inline constexpr const char* kCollectiveNames[] = {"all_gather", "all_reduce", "reduce_scatter", "all_to_all",
                                                   "transfer"};
inline constexpr size_t kCollectiveKinds = 5;
inline const char* to_text(CollectiveKind kind) { return kCollectiveNames[static_cast<size_t>(kind)]; }

/// Of a number that somebody sent, which may be no kind at all.
inline std::string kind_text(uint8_t kind) {
  return kind < kCollectiveKinds ? to_text(static_cast<CollectiveKind>(kind)) : "kind " + std::to_string(kind);
}

}  // namespace lockstep
