#pragma once
#include <ATen/Parallel.h>

#include "runtime/kernels/products/product_loops.h"
#include "runtime/kernels/tensors/parallel.h"

namespace lockstep::kernels {

/// LibTorch's threads; none but the caller's for less than `operations` fma, or inside of a parallel region.
inline Workers parallel_workers(double operations) {
  constexpr double kSmallest = 1 << 18;
  if (operations < kSmallest || at::in_parallel_region()) return {};
  return {at::get_num_threads(), [](int64_t items, const std::function<void(int64_t)>& work) {
            parallel_for(0, items, 1, [&](int64_t begin, int64_t end) {
              for (int64_t item = begin; item < end; ++item) work(item);
            });
          }};
}

}  // namespace lockstep::kernels
