#pragma once
#include <cstdint>
#include <functional>

namespace lockstep::kernels {

/// work(begin, end) for parts of [first, last) of at least `grain`, on LibTorch's threads (at::get_num_threads()); on
/// the caller's alone inside of a parallel region. Rethrows what a part threw.
///
/// Instead of at::parallel_for: that is inlined into whoever calls it, and a caller that is compiled without -fopenmp
/// runs it on one thread and says nothing.
void parallel_for(int64_t first, int64_t last, int64_t grain, const std::function<void(int64_t, int64_t)>& work);

}  // namespace lockstep::kernels
