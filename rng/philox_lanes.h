#pragma once
#include "core/elementary/instruction_set.h"
#include "rng/philox.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

/// Philox for many blocks at once on the CPU: the words of consecutive indices, word j of block i at words[j][i].
///
/// Each 32-bit word lives in a 64-bit lane whose upper half is ignored, so that one multiply instruction gives a round
/// both halves of its product and nothing is shuffled until the end. (Compilers find this by themselves, or not.)
namespace lockstep::rng {

/// Blocks per batch.
inline constexpr int kBatch = 32;
using WordBatch = uint32_t[4][kBatch];

#if defined(__x86_64__)
namespace detail {

LOCKSTEP_TARGET_AVX512 inline void philox_batch_avx512(Key key, uint64_t stream, uint64_t first, WordBatch& words) {
  const __m512i multiplier0 = _mm512_set1_epi64(0xd2511f53), multiplier1 = _mm512_set1_epi64(0xcd9e8d57);
  const __m512i steps = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  for (int block = 0; block < kBatch; block += 8) {
    auto key0 = static_cast<uint32_t>(key.seed), key1 = static_cast<uint32_t>(key.seed >> 32);
    __m512i c0 = _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(first + static_cast<uint64_t>(block))), steps);
    __m512i c1 = _mm512_srli_epi64(c0, 32);
    __m512i c2 = _mm512_set1_epi64(static_cast<int64_t>(stream));
    __m512i c3 = _mm512_srli_epi64(c2, 32);
    for (int round = 0; round < 10; ++round, key0 += 0x9e3779b9u, key1 += 0xbb67ae85u) {
      const __m512i product0 = _mm512_mul_epu32(c0, multiplier0), product1 = _mm512_mul_epu32(c2, multiplier1);
      c0 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product1, 32), c1), _mm512_set1_epi64(key0));
      c2 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product0, 32), c3), _mm512_set1_epi64(key1));
      c1 = product1;
      c3 = product0;
    }
    const __m512i result[4] = {c0, c1, c2, c3};
    for (int j = 0; j < 4; ++j) _mm512_mask_cvtepi64_storeu_epi32(&words[j][block], 0xff, result[j]);
  }
}

LOCKSTEP_TARGET_AVX2 inline void philox_batch_avx2(Key key, uint64_t stream, uint64_t first, WordBatch& words) {
  const __m256i multiplier0 = _mm256_set1_epi64x(0xd2511f53), multiplier1 = _mm256_set1_epi64x(0xcd9e8d57);
  const __m256i steps = _mm256_set_epi64x(3, 2, 1, 0), low_words = _mm256_set_epi32(0, 0, 0, 0, 6, 4, 2, 0);
  for (int block = 0; block < kBatch; block += 4) {
    auto key0 = static_cast<uint32_t>(key.seed), key1 = static_cast<uint32_t>(key.seed >> 32);
    __m256i c0 =
        _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(first + static_cast<uint64_t>(block))), steps);
    __m256i c1 = _mm256_srli_epi64(c0, 32);
    __m256i c2 = _mm256_set1_epi64x(static_cast<int64_t>(stream));
    __m256i c3 = _mm256_srli_epi64(c2, 32);
    for (int round = 0; round < 10; ++round, key0 += 0x9e3779b9u, key1 += 0xbb67ae85u) {
      const __m256i product0 = _mm256_mul_epu32(c0, multiplier0), product1 = _mm256_mul_epu32(c2, multiplier1);
      c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product1, 32), c1), _mm256_set1_epi64x(key0));
      c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), c3), _mm256_set1_epi64x(key1));
      c1 = product1;
      c3 = product0;
    }
    const __m256i result[4] = {c0, c1, c2, c3};
    for (int j = 0; j < 4; ++j) {
      const __m128i low = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(result[j], low_words));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(&words[j][block]), low);
    }
  }
}

}  // namespace detail
#endif

}  // namespace lockstep::rng
