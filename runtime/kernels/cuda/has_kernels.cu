#include "runtime/kernels/cuda/cuda_kernels.h"

namespace lockstep::cuda {

bool has_kernels() { return true; }

}  // namespace lockstep::cuda
