#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

/// One source for CPU and GPU: functions marked LOCKSTEP_PORTABLE use IEEE operations and integers only, are inlined
/// into their caller (so that they take on its instruction set) and give the same bits wherever they are compiled,
/// provided that nothing is contracted (-ffp-contract=off, -fmad=false), nothing is reassociated (no fast-math),
/// rounding is to nearest and subnormal numbers are kept (core/elementary/floating_environment.h).
#if defined(__CUDACC__)
#  define LOCKSTEP_PORTABLE __host__ __device__ __forceinline__
#else
#  define LOCKSTEP_PORTABLE inline __attribute__((always_inline))
#endif

namespace lockstep::portable {

/// a * b + c rounded once. The only fused multiply-add in Lockstep; the compiler never makes one by itself.
LOCKSTEP_PORTABLE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LOCKSTEP_PORTABLE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// The IEEE square root: correctly rounded, never an approximation.
LOCKSTEP_PORTABLE float sqrt(float x) { return __builtin_sqrtf(x); }
LOCKSTEP_PORTABLE double sqrt(double x) { return __builtin_sqrt(x); }

LOCKSTEP_PORTABLE float absolute(float x) { return __builtin_fabsf(x); }
LOCKSTEP_PORTABLE double absolute(double x) { return __builtin_fabs(x); }

/// The bits of a value as another type of the same size (std::bit_cast, but always inlined and on GPUs too).
template <class To, class From>
LOCKSTEP_PORTABLE To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  __builtin_memcpy(&result, &value, sizeof(To));
  return result;
}

/// The high 64 bits of a 64 x 64 bit product.
LOCKSTEP_PORTABLE uint64_t multiply_high(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64);
#endif
}

}  // namespace lockstep::portable
