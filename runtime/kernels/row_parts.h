#pragma once
#include <algorithm>

#include "runtime/kernels/loops.h"
#include "runtime/kernels/parallel.h"

namespace lockstep::kernels {

inline constexpr int64_t kGrain = 1 << 15;  ///< elements that are not worth another thread

/// run(part, first row of the part) for parts of `rows`, on LibTorch's threads.
template <class Run>
void by_parts(loops::Rows rows, const Run& run) {
  parallel_for(0, rows.count, std::max<int64_t>(kGrain / std::max<int64_t>(rows.width, 1), 1),
               [&](int64_t begin, int64_t end) {
                 run(loops::Rows{end - begin, rows.width}, begin);
               });
}

}  // namespace lockstep::kernels
