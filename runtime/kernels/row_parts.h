#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "runtime/kernels/loops.h"
#include "runtime/kernels/parallel.h"

namespace lockstep::kernels {

inline constexpr int64_t kGrain = 1 << 15;  ///< elements that are not worth another thread

/// Rows of no elements are rows too: what is computed per row is written for them.
inline loops::Rows rows_of(const at::Tensor& x) {
  return {c10::multiply_integers(x.sizes().slice(0, x.sizes().size() - 1)), x.size(-1)};
}

/// run(part, first row of the part) for parts of `rows`, on LibTorch's threads.
template <class Run>
void by_parts(loops::Rows rows, const Run& run) {
  parallel_for(0, rows.count, std::max<int64_t>(kGrain / std::max<int64_t>(rows.width, 1), 1),
               [&](int64_t begin, int64_t end) {
                 run(loops::Rows{end - begin, rows.width}, begin);
               });
}

}  // namespace lockstep::kernels
