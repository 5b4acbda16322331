#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "core/elementary/half.h"
#include "core/elementary/portable.h"
#include "runtime/kernels/cuda/cuda_kernels.h"

/// Elements as kernels read and write them, 16 bytes at once where rows allow it; what is computed is float.
namespace lockstep::cuda {

struct BFloat16 {
  uint16_t word;
};

__device__ inline float number(float x) { return x; }
__device__ inline float number(BFloat16 x) { return elementary::from_bfloat16(x.word); }

__device__ inline void put(float& to, float x) { to = x; }
/// To nearest even; NaN stays one.
__device__ inline void put(BFloat16& to, float x) {
  const bool is_nan = (portable::bits<uint32_t>(x) & 0x7fffffffu) > 0x7f800000u;
  to.word = is_nan ? uint16_t{0x7fc0} : elementary::to_bfloat16(x);
}

/// Neighbours that are read and written at once, where they begin at a multiple of kAligned elements.
template <class T, int kWidth, int kAligned = kWidth>
struct alignas(sizeof(T) * kAligned) Pack {
  T at[kWidth];
};

template <int kWidth, int kAligned = kWidth, class T>
__device__ const Pack<T, kWidth, kAligned>* packs(const T* start) {
  return static_cast<const Pack<T, kWidth, kAligned>*>(__builtin_assume_aligned(start, sizeof(T) * kAligned));
}
template <int kWidth, int kAligned = kWidth, class T>
__device__ Pack<T, kWidth, kAligned>* packs(T* start) {
  return static_cast<Pack<T, kWidth, kAligned>*>(__builtin_assume_aligned(start, sizeof(T) * kAligned));
}

template <class T>
inline constexpr int kWide = 16 / sizeof(T);

template <class... Pointers>
bool are_aligned(Pointers... starts) {
  return ((reinterpret_cast<uintptr_t>(starts) % 16 == 0) && ...);
}

/// Calls `function` with a T and how many of them it takes at once: kWide<T> if `size` elements are whole packs.
template <class Function, class... Pointers>
void on_elements(Element element, int64_t size, Function function, Pointers... starts) {
  const auto with = [&]<class T>(T) {
    if (size % kWide<T> == 0 && are_aligned(starts...)) return function.template operator()<T, kWide<T>>();
    function.template operator()<T, 1>();
  };
  if (element == Element::kFloat32) return with(float{});
  with(BFloat16{});
}

}  // namespace lockstep::cuda
