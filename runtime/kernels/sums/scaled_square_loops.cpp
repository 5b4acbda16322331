// The sums of squares of a gradient norm. Their order is free, so blocks come from the last to the first: what the pass
// that found the maximum read last is still in the cache.
#include <algorithm>
#include <type_traits>

#include "runtime/kernels/simd/best_instruction_set.h"
#include "runtime/kernels/simd/vectors.h"
#include "runtime/kernels/sums/integer_sum_loops.h"

namespace lockstep::kernels::loops {
namespace {

/// What larger magnitudes, infinities and NaNs count as: a sum of them would depend on where they lie.
constexpr double kLimit = WideSum::kLimit;

/// Comparisons with a NaN are false.
template <class T>
LOCKSTEP_PORTABLE T limited(T x) {
  constexpr T kLargest = kLimit;
  x = x < kLargest ? x : kLargest;
  return x > -kLargest ? x : -kLargest;
}

/// Elements of a block: their squares, 2^54 at most, fit the 16 or 32 words of 64 bits that share them.
constexpr int64_t kBlock = 4096;

void add_word(uint64_t word, WideSum& sum) {
  sum.high += static_cast<int64_t>(word >> 32);
  sum.low += static_cast<int64_t>(word & 0xffffffff);
}

/// Adding 1.5 * 2^52 rounds a double below 2^51 to the nearest integer, which the low half of the sum's bits holds as
/// an int32 if it fits.
template <class T>
struct ScaledSquares {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* __restrict x, double scale, WideSum* out) {
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto rounded = portable::bits<int64_t>(limited(static_cast<double>(x[i]) * scale) + 0x1.8p52);
      const int64_t integer = static_cast<int32_t>(rounded), square = integer * integer;
      high += static_cast<int64_t>(static_cast<uint64_t>(square) >> 32);
      low += square & 0xffffffff;
    }
    *out = {high, low};
  }
};

// Where the scale is a float: a product with a power of two is exact, or too small to be more than 0.

void add_squares(int64_t count, const float* x, float scale, WideSum& sum) {
  for (int64_t i = 0; i < count; ++i) {
    const auto integer = static_cast<int64_t>(__builtin_rintf(limited(x[i] * scale)));
    add_word(static_cast<uint64_t>(integer * integer), sum);
  }
}

#if defined(__x86_64__)

/// Integers of 32 bits side by side; words have the squares of those at even and at odd places. Words are variables of
/// their own: compilers leave those of a struct in memory.
struct Avx2Squares {
  static constexpr int kWords = 4;
  /// Of a NaN and a number the instructions give the second.
  LOCKSTEP_INLINE_AVX2 static __m256 limited(__m256 x) {
    return _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(kLimit)), _mm256_set1_ps(-kLimit));
  }
  LOCKSTEP_INLINE_AVX2 static void add(const float* x, __m256 scale, __m256i& even, __m256i& odd) {
    const __m256i integers = _mm256_cvtps_epi32(limited(_mm256_mul_ps(_mm256_loadu_ps(x), scale)));
    const __m256i others = _mm256_srli_epi64(integers, 32);
    even = _mm256_add_epi64(even, _mm256_mul_epi32(integers, integers));
    odd = _mm256_add_epi64(odd, _mm256_mul_epi32(others, others));
  }
  LOCKSTEP_TARGET_AVX2 static void block(int64_t count, const float* x, float scale, uint64_t* words) {
    const __m256 all = _mm256_set1_ps(scale);
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (int64_t i = 0; i < count; i += 4 * kWords) {
      add(x + i, all, a, b);
      add(x + i + 2 * kWords, all, c, d);
    }
    store(words, a), store(words + kWords, b), store(words + 2 * kWords, c), store(words + 3 * kWords, d);
  }
  LOCKSTEP_INLINE_AVX2 static void store(uint64_t* to, __m256i words) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), words);
  }
};

struct Avx512Squares {
  static constexpr int kWords = 8;
  LOCKSTEP_INLINE_AVX512 static __m512 limited(__m512 x) {
    return _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(kLimit)), _mm512_set1_ps(-kLimit));
  }
  LOCKSTEP_INLINE_AVX512 static void add(const float* x, __m512 scale, __m512i& even, __m512i& odd) {
    const __m512i integers = _mm512_cvtps_epi32(limited(_mm512_mul_ps(_mm512_loadu_ps(x), scale)));
    const __m512i others = _mm512_srli_epi64(integers, 32);
    even = _mm512_add_epi64(even, _mm512_mul_epi32(integers, integers));
    odd = _mm512_add_epi64(odd, _mm512_mul_epi32(others, others));
  }
  LOCKSTEP_TARGET_AVX512 static void block(int64_t count, const float* x, float scale, uint64_t* words) {
    const __m512 all = _mm512_set1_ps(scale);
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    for (int64_t i = 0; i < count; i += 4 * kWords) {
      add(x + i, all, a, b);
      add(x + i + 2 * kWords, all, c, d);
    }
    store(words, a), store(words + kWords, b), store(words + 2 * kWords, c), store(words + 3 * kWords, d);
  }
  LOCKSTEP_INLINE_AVX512 static void store(uint64_t* to, __m512i words) { _mm512_storeu_si512(to, words); }
};

/// Blocks of at most kBlock elements and a multiple of what a turn of Set takes, the rest alone.
template <class Set>
void by_blocks(int64_t count, const float* x, float scale, WideSum& sum) {
  constexpr int64_t kTurn = 4 * Set::kWords;
  const int64_t whole = count / kTurn * kTurn;
  add_squares(count - whole, x + whole, scale, sum);
  uint64_t words[kTurn];
  for (int64_t end = whole; end > 0; end -= kBlock) {
    const int64_t size = std::min(kBlock, end);
    Set::block(size, x + end - size, scale, words);
    for (const uint64_t word : words) add_word(word, sum);
  }
}

#endif

WideSum squares_of_floats(int64_t count, const float* x, float scale, InstructionSet set) {
  WideSum sum;
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::kAvx512:
      by_blocks<Avx512Squares>(count, x, scale, sum);
      break;
    case InstructionSet::kAvx2:
      by_blocks<Avx2Squares>(count, x, scale, sum);
      break;
#endif
    default:
      add_squares(count, x, scale, sum);
  }
  return sum;
}

/// Blocks carry into the high word sooner than elements do.
WideSum with_carry(const WideSum& sum) { return {sum.high + (sum.low >> 32), sum.low & 0xffffffff}; }

}  // namespace

template <class T>
WideSum scaled_squares(int64_t count, const T* x, double scale, InstructionSet set) {
  if constexpr (std::is_same_v<T, float>)
    if (scale < 0x1p127) return with_carry(squares_of_floats(count, x, static_cast<float>(scale), set));
  WideSum result;
  on_instruction_set<ScaledSquares<T>>(set, count, x, scale, &result);
  return with_carry(result);
}

template WideSum scaled_squares(int64_t, const float*, double, InstructionSet);
template WideSum scaled_squares(int64_t, const double*, double, InstructionSet);

}  // namespace lockstep::kernels::loops
