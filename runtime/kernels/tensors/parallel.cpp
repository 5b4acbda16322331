// The one file that is compiled with OpenMP.
#include "runtime/kernels/tensors/parallel.h"

#include <ATen/Parallel.h>

#if !defined(_OPENMP) && !defined(__clang__)
#  error "compile with -fopenmp: without it there is one thread"
#endif

namespace lockstep::kernels {

void parallel_for(int64_t first, int64_t last, int64_t grain, const std::function<void(int64_t, int64_t)>& work) {
  at::parallel_for(first, last, grain, work);
}

}  // namespace lockstep::kernels
