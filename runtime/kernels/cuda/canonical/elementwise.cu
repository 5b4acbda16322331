#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/launch.h"
#include "runtime/kernels/rows/elementwise_functions.h"

namespace lockstep::cuda::canonical {
namespace {

template <class F>
__global__ void map(int64_t count, const float* x, float* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) out[i] = F::of(x[i]);
}

template <class F>
__global__ void map_pairs(int64_t count, const float* g, const float* x, float* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) out[i] = F::of(g[i], x[i]);
}

}  // namespace

void apply(kernels::loops::Function function, int64_t count, const float* x, float* out) {
  kernels::loops::with_function<float>(function,
                                       [&]<class F>(F) { launch("elementwise", map<F>, count, count, x, out); });
}

void apply(kernels::loops::Gradient gradient, int64_t count, const float* g, const float* x, float* out) {
  kernels::loops::with_gradient<float>(
      gradient, [&]<class F>(F) { launch("elementwise_gradient", map_pairs<F>, count, count, g, x, out); });
}

}  // namespace lockstep::cuda::canonical
