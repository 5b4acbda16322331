#pragma once
#include "core/elementary/portable.h"
#include "runtime/kernels/products/product_loops.h"

namespace lockstep::cuda::canonical {

__device__ inline float widened(float x) { return x; }
__device__ inline float widened(kernels::Bfloat16 x) {
  return portable::bits<float>(static_cast<uint32_t>(x.bits) << 16);
}

}  // namespace lockstep::cuda::canonical
