#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep {

/// The numbers are part of the format of recordings and of what travels between processes.
enum class CollectiveKind : uint8_t { kAllGather, kAllReduce, kReduceScatter, kAllToAll };
inline constexpr const char* kCollectiveNames[] = {"all_gather", "all_reduce", "reduce_scatter", "all_to_all"};
inline constexpr size_t kCollectiveKinds = 4;
inline const char* to_text(CollectiveKind kind) { return kCollectiveNames[static_cast<size_t>(kind)]; }

}  // namespace lockstep
