// The digest of a state where it lies.
#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/on_gpu/on_gpu.h"

namespace lockstep::on_gpu {

Digest place_sum(const Tensor& x, uint64_t key, uint64_t first, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  LOCKSTEP_CHECK(x.is_contiguous() && x.scalar_type() == c10::kFloat, "digest of {} {}", c10::str(x.sizes()),
                 c10::toString(x.scalar_type()));
  LOCKSTEP_CHECK(sizes.size() == strides.size() && sizes.size() <= cuda::PlaceBox::kMostDims, "digest of {} dimensions",
                 sizes.size());
  LOCKSTEP_CHECK_EQ(c10::multiply_integers(sizes), x.numel());
  if (x.numel() == 0) return {};
  cuda::PlaceBox box{first, static_cast<int>(sizes.size()), {}, {}};
  std::ranges::copy(sizes, box.size), std::ranges::copy(strides, box.stride);
  const auto sums = at::empty({2, cuda::square_parts(x.numel())}, x.options().dtype(c10::kLong));
  auto* lows = static_cast<uint64_t*>(sums.mutable_data_ptr());
  cuda::place_sums(x.numel(), static_cast<const uint32_t*>(x.const_data_ptr()), key, box, lows, lows + sums.size(1));
  const auto both = at::sum(sums, {1}).cpu();
  return {.high = static_cast<uint64_t>(both[1].item<int64_t>()),
          .low = static_cast<uint64_t>(both[0].item<int64_t>())};
}

}  // namespace lockstep::on_gpu
