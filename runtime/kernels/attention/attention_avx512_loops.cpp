#if defined(__x86_64__)
#  define LOCKSTEP_TILE_TARGET LOCKSTEP_TARGET_AVX512
#  define LOCKSTEP_TILE_HAS_AVX2
#  include "runtime/kernels/attention/attention_backward.h"
#  include "runtime/kernels/attention/attention_forward.h"

namespace lockstep::kernels {

#  define LOCKSTEP_INSTANTIATE(Input, T)                                                          \
    template <>                                                                                   \
    const AttentionKernels<Input, T>& avx512_attention() {                                        \
      using Tiles = Tiling<Avx512<T>, 14, 16, 8, 4>;                                              \
      static constexpr AttentionKernels<Input, T> kKernels = {ForwardKernel<Tiles, Input>::run,   \
                                                              BackwardKernel<Tiles, Input>::run}; \
      return kKernels;                                                                            \
    }
LOCKSTEP_INSTANTIATE(float, float)
LOCKSTEP_INSTANTIATE(Bfloat16, float)
LOCKSTEP_INSTANTIATE(double, double)
#  undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels
#endif
