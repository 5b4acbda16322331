#pragma once
#include "core/elementary/instruction_set.h"
#include "rng/draws.h"
#include "rng/philox_lanes.h"

/// The CPU kernels: loops over blocks, compiled for every instruction set.
namespace lockstep::rng {

/// Writes the values of blocks first_block .. first_block + blocks - 1, contiguously.
template <class Draw, class Store>
using BulkFunction = void (*)(const Draw& draw, Key key, uint64_t stream, uint64_t first_block, int64_t blocks,
                              typename Store::Stored* out);

namespace detail {

/// Turns the words of one block into its stored values.
template <class Draw, class Store>
LOCKSTEP_PORTABLE void store_block(const Draw& draw, const Words& words, typename Store::Stored* __restrict out) {
  typename Draw::Value v[Draw::kPerBlock];
  draw(words, v);
  out[0] = Store::store(v[0]);
  out[1] = Store::store(v[1]);
  if constexpr (Draw::kPerBlock == 4) {
    out[2] = Store::store(v[2]);
    out[3] = Store::store(v[3]);
  }
}

/// The values of kBatch blocks whose words are known.
template <class Draw, class Store>
LOCKSTEP_PORTABLE void store_batch(const Draw& draw, const WordBatch& words, typename Store::Stored* __restrict out) {
  const Draw local = draw;  // no reload after each store
  for (int64_t i = 0; i < kBatch; ++i) {
    store_block<Draw, Store>(local, {{words[0][i], words[1][i], words[2][i], words[3][i]}}, out + i * Draw::kPerBlock);
  }
}

/// Block after block.
template <class Draw, class Store>
LOCKSTEP_PORTABLE void store_rest(const Draw& draw, Key key, uint64_t stream, uint64_t first_block, int64_t blocks,
                                  typename Store::Stored* __restrict out) {
  const Draw local = draw;
  for (int64_t i = 0; i < blocks; ++i) {
    const Words block = words(key, {first_block + static_cast<uint64_t>(i), stream});
    store_block<Draw, Store>(local, block, out + i * Draw::kPerBlock);
  }
}

template <class Draw, class Store>
void bulk_baseline(const Draw& draw, Key key, uint64_t stream, uint64_t first_block, int64_t blocks,
                   typename Store::Stored* out) {
  store_rest<Draw, Store>(draw, key, stream, first_block, blocks, out);
}

#if defined(__x86_64__)
template <class Draw, class Store>
LOCKSTEP_TARGET_AVX2 void bulk_avx2(const Draw& draw, Key key, uint64_t stream, uint64_t first_block, int64_t blocks,
                                    typename Store::Stored* out) {
  WordBatch batch;
  for (; blocks >= kBatch; blocks -= kBatch, first_block += kBatch, out += kBatch * Draw::kPerBlock) {
    philox_batch_avx2(key, stream, first_block, batch);
    store_batch<Draw, Store>(draw, batch, out);
  }
  store_rest<Draw, Store>(draw, key, stream, first_block, blocks, out);
}

template <class Draw, class Store>
LOCKSTEP_TARGET_AVX512 void bulk_avx512(const Draw& draw, Key key, uint64_t stream, uint64_t first_block,
                                        int64_t blocks, typename Store::Stored* out) {
  WordBatch batch;
  for (; blocks >= kBatch; blocks -= kBatch, first_block += kBatch, out += kBatch * Draw::kPerBlock) {
    philox_batch_avx512(key, stream, first_block, batch);
    store_batch<Draw, Store>(draw, batch, out);
  }
  store_rest<Draw, Store>(draw, key, stream, first_block, blocks, out);
}
#endif

}  // namespace detail

template <class Draw, class Store>
BulkFunction<Draw, Store> bulk_function(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return detail::bulk_avx512<Draw, Store>;
  if (set == InstructionSet::kAvx2) return detail::bulk_avx2<Draw, Store>;
#else
  static_cast<void>(set);
#endif
  return detail::bulk_baseline<Draw, Store>;
}

}  // namespace lockstep::rng
