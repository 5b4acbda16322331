#if defined(__x86_64__)
#  define LOCKSTEP_TILE_TARGET LOCKSTEP_TARGET_AVX512
#  define LOCKSTEP_TILE_HAS_AVX2
#  include "runtime/kernels/products/product_kernel.h"
#  include "runtime/kernels/products/product_pack.h"

namespace lockstep::kernels {
namespace {
template <class Input, class T, int kColumns>
constexpr Packers<Input, T> kPack = {pack<14, Input, T>, pack<kColumns, Input, T>};
}  // namespace

template <>
const ProductTiles<float>& avx512_tiles() {
  static constexpr ProductTiles<float> kTiles = {14,
                                                 16,
                                                 32,
                                                 compute_tile<Avx512<float>, 16, 2, 14, 8, 4, 2, 1>,
                                                 kPack<float, float, 32>,
                                                 kPack<Bfloat16, float, 32>};
  return kTiles;
}

template <>
const ProductTiles<double>& avx512_tiles() {
  static constexpr ProductTiles<double> kTiles = {
      14, 16, 16, compute_tile<Avx512<double>, 16, 2, 14, 8, 4, 2, 1>, kPack<double, double, 16>, {}};
  return kTiles;
}

}  // namespace lockstep::kernels
#endif
