#include "runtime/kernels/rows/elementwise_loops.h"

#include "runtime/kernels/rows/elementwise_functions.h"
#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

template <class T, class F>
struct Map {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* x, T* __restrict out) {
    for (int64_t i = 0; i < count; ++i) out[i] = F::of(x[i]);
  }
};
template <class T, class F>
struct MapPairs {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* g, const T* x, T* __restrict out) {
    for (int64_t i = 0; i < count; ++i) out[i] = F::of(g[i], x[i]);
  }
};

}  // namespace

template <class T>
void apply(Function function, int64_t count, const T* x, T* out, InstructionSet set) {
  with_function<T>(function, [&]<class F>(F) { on_instruction_set<Map<T, F>>(set, count, x, out); });
}

template <class T>
void apply(Gradient gradient, int64_t count, const T* g, const T* x, T* out, InstructionSet set) {
  with_gradient<T>(gradient, [&]<class F>(F) { on_instruction_set<MapPairs<T, F>>(set, count, g, x, out); });
}

#define LOCKSTEP_INSTANTIATE(T)                                         \
  template void apply(Function, int64_t, const T*, T*, InstructionSet); \
  template void apply(Gradient, int64_t, const T*, const T*, T*, InstructionSet)
LOCKSTEP_INSTANTIATE(float);
LOCKSTEP_INSTANTIATE(double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::loops
