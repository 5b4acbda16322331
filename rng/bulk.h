#pragma once
#include "core/instruction_set.h"
#include "rng/draws.h"

/// The CPU kernels: one loop over blocks, compiled for every instruction set.
namespace lockstep::rng {

/// Writes the values of blocks first_block .. first_block + blocks - 1, contiguously.
template <class Draw, class Store>
using BulkFunction = void (*)(const Draw& draw, Key key, uint64_t stream, uint64_t first_block, int64_t blocks,
                              typename Store::Stored* out);

namespace detail {

template <class Draw, class Store>
LOCKSTEP_PORTABLE void bulk(const Draw& draw, Key key, uint64_t stream, uint64_t first_block, int64_t blocks,
                            typename Store::Stored* __restrict out) {
  for (int64_t i = 0; i < blocks; ++i) {
    typename Draw::Value v[Draw::kPerBlock];
    draw(words(key, {first_block + static_cast<uint64_t>(i), stream}), v);
    auto* target = out + i * Draw::kPerBlock;
    target[0] = Store::store(v[0]);
    target[1] = Store::store(v[1]);
    if constexpr (Draw::kPerBlock == 4) {
      target[2] = Store::store(v[2]);
      target[3] = Store::store(v[3]);
    }
  }
}

template <class Draw, class Store>
LOCKSTEP_TARGET_BASELINE void bulk_baseline(const Draw& draw, Key key, uint64_t stream, uint64_t first_block,
                                            int64_t blocks, typename Store::Stored* out) {
  bulk<Draw, Store>(draw, key, stream, first_block, blocks, out);
}

template <class Draw, class Store>
LOCKSTEP_TARGET_AVX2 void bulk_avx2(const Draw& draw, Key key, uint64_t stream, uint64_t first_block, int64_t blocks,
                                    typename Store::Stored* out) {
  bulk<Draw, Store>(draw, key, stream, first_block, blocks, out);
}

template <class Draw, class Store>
LOCKSTEP_TARGET_AVX512 void bulk_avx512(const Draw& draw, Key key, uint64_t stream, uint64_t first_block,
                                        int64_t blocks, typename Store::Stored* out) {
  bulk<Draw, Store>(draw, key, stream, first_block, blocks, out);
}

}  // namespace detail

template <class Draw, class Store>
BulkFunction<Draw, Store> bulk_function(InstructionSet set) {
  if (set == InstructionSet::kAvx512) return detail::bulk_avx512<Draw, Store>;
  if (set == InstructionSet::kAvx2) return detail::bulk_avx2<Draw, Store>;
  return detail::bulk_baseline<Draw, Store>;
}

}  // namespace lockstep::rng
