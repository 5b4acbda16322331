#pragma once
#include <cmath>
#include <cstdint>

#include "core/elementary/instruction_set.h"
#include "core/elementary/portable.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

/// Vector registers of each instruction set under common names, for the kernels that spell their tiles out. Each lane
/// does the IEEE operation of the same name, so that a kernel gives the same bits on every set.
///
/// Functions of a set may be called by functions compiled for that set only (LOCKSTEP_TARGET_...).
namespace lockstep::kernels {

/// Without vector instructions: correct, not fast.
template <class T>
struct Baseline {
  using Element = T;
  static constexpr int kLanes = 4;
  struct Vector {
    T lane[kLanes];
  };

  template <class Operation>
  LOCKSTEP_PORTABLE static Vector each(const Operation& operation) {
    Vector result;
    for (int i = 0; i < kLanes; ++i) result.lane[i] = operation(i);
    return result;
  }
  static Vector zero() { return broadcast(T(0)); }
  static Vector broadcast(T value) {
    return each([&](int) { return value; });
  }
  static Vector load(const T* from) {
    return each([&](int i) { return from[i]; });
  }
  static void store(T* to, const Vector& value) {
    for (int i = 0; i < kLanes; ++i) to[i] = value.lane[i];
  }
  static Vector add(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Vector multiply(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  /// The larger one; b where one is NaN.
  static Vector maximum(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  /// The nearest integer, the even one of two.
  static Vector rint(const Vector& a) {
    return each([&](int i) { return std::rint(a.lane[i]); });
  }
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) {
    return each([&](int i) { return portable::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }
};

#if defined(__x86_64__)

/// The operations that every set spells alike but for prefix and suffix.
#  define LOCKSTEP_VECTOR_OPERATIONS(TARGET, prefix, suffix)                                     \
    TARGET static Vector zero() { return prefix##_setzero_##suffix(); }                          \
    TARGET static Vector broadcast(Element value) { return prefix##_set1_##suffix(value); }      \
    TARGET static Vector load(const Element* from) { return prefix##_loadu_##suffix(from); }     \
    TARGET static void store(Element* to, Vector value) { prefix##_storeu_##suffix(to, value); } \
    TARGET static Vector add(Vector a, Vector b) { return prefix##_add_##suffix(a, b); }         \
    TARGET static Vector multiply(Vector a, Vector b) { return prefix##_mul_##suffix(a, b); }    \
    TARGET static Vector maximum(Vector a, Vector b) { return prefix##_max_##suffix(a, b); }     \
    TARGET static Vector fma(Vector a, Vector b, Vector c) { return prefix##_fmadd_##suffix(a, b, c); }

#  define LOCKSTEP_INLINE_AVX2 LOCKSTEP_TARGET_AVX2 __attribute__((always_inline))
#  define LOCKSTEP_INLINE_AVX512 LOCKSTEP_TARGET_AVX512 __attribute__((always_inline))

template <class T>
struct Avx2;
template <>
struct Avx2<float> {
  using Element = float;
  using Vector = __m256;
  static constexpr int kLanes = 8;
  LOCKSTEP_VECTOR_OPERATIONS(LOCKSTEP_INLINE_AVX2, _mm256, ps)
  LOCKSTEP_INLINE_AVX2 static Vector rint(Vector a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};
template <>
struct Avx2<double> {
  using Element = double;
  using Vector = __m256d;
  static constexpr int kLanes = 4;
  LOCKSTEP_VECTOR_OPERATIONS(LOCKSTEP_INLINE_AVX2, _mm256, pd)
  LOCKSTEP_INLINE_AVX2 static Vector rint(Vector a) {
    return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

template <class T>
struct Avx512;
template <>
struct Avx512<float> {
  using Element = float;
  using Vector = __m512;
  static constexpr int kLanes = 16;
  LOCKSTEP_VECTOR_OPERATIONS(LOCKSTEP_INLINE_AVX512, _mm512, ps)
  LOCKSTEP_INLINE_AVX512 static Vector rint(Vector a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};
template <>
struct Avx512<double> {
  using Element = double;
  using Vector = __m512d;
  static constexpr int kLanes = 8;
  LOCKSTEP_VECTOR_OPERATIONS(LOCKSTEP_INLINE_AVX512, _mm512, pd)
  LOCKSTEP_INLINE_AVX512 static Vector rint(Vector a) {
    return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

#  undef LOCKSTEP_VECTOR_OPERATIONS
#endif

}  // namespace lockstep::kernels
