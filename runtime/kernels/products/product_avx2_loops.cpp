#if defined(__x86_64__)
#  define LOCKSTEP_TILE_TARGET LOCKSTEP_TARGET_AVX2
#  define LOCKSTEP_TILE_HAS_AVX2
#  include "runtime/kernels/products/product_kernel.h"
#  include "runtime/kernels/products/product_pack.h"

namespace lockstep::kernels {
namespace {
template <class Input, class T, int kColumns>
constexpr Packers<Input, T> kPack = {pack<6, Input, T>, pack<kColumns, Input, T>};
}  // namespace

template <>
const ProductTiles<float>& avx2_tiles() {
  static constexpr ProductTiles<float> kTiles = {
      6, 8, 16, compute_tile<Avx2<float>, 8, 2, 6, 4, 2, 1>, kPack<float, float, 16>, kPack<Bfloat16, float, 16>};
  return kTiles;
}

template <>
const ProductTiles<double>& avx2_tiles() {
  static constexpr ProductTiles<double> kTiles = {
      6, 8, 8, compute_tile<Avx2<double>, 8, 2, 6, 4, 2, 1>, kPack<double, double, 8>, {}};
  return kTiles;
}

}  // namespace lockstep::kernels
#endif
