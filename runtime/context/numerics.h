#pragma once
#include <cstdint>

namespace lockstep {

/// Whether the bits of a result may depend on where and in which pieces it was computed.
///
/// `kNative` is whatever LibTorch does. Under `kCanonical` every sum of floating numbers is a SumTree over global
/// indices, so that each op gives the same bits on every mesh, placement, thread count and instruction set
/// (docs/numerics.md); sums that no tree serves are computed whole.
enum class Numerics : uint8_t { kNative, kCanonical };

inline const char* to_text(Numerics numerics) { return numerics == Numerics::kNative ? "native" : "canonical"; }

}  // namespace lockstep
