#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "runtime/kernels/rows/row_loops.h"
#include "runtime/kernels/tensors/parallel.h"

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

/// The same for rows that are written to `out`, which may be memory that the system has not provided yet: each part is
/// run in blocks whose pages are touched just before. Pages that are provided one after the other cost two thirds of
/// what they do in between of computing.
template <class T, class Run>
void by_written_parts(loops::Rows rows, T* out, const Run& run) {
  constexpr int64_t kBlock = (int64_t{1} << 20) / sizeof(T), kPage = 4096 / sizeof(T);
  const int64_t width = std::max<int64_t>(rows.width, 1), most = std::max<int64_t>(kBlock / width, 1);
  by_parts(rows, [&](loops::Rows part, int64_t first) {
    for (int64_t row = 0; row < part.count; row += most) {
      const loops::Rows block{std::min(most, part.count - row), rows.width};
      T* const to = out + (first + row) * rows.width;
      for (int64_t i = 0; i < block.count * block.width; i += kPage) to[i] = T(0);
      run(block, first + row);
    }
  });
}

}  // namespace lockstep::kernels
