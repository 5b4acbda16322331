#define LOCKSTEP_TILE_TARGET LOCKSTEP_TARGET_BASELINE
#include "runtime/kernels/products/product_kernel.h"
#include "runtime/kernels/products/product_pack.h"

namespace lockstep::kernels {
namespace {
template <class Input, class T, int kColumns>
constexpr Packers<Input, T> kPack = {pack<4, Input, T>, pack<kColumns, Input, T>};
}  // namespace

template <>
const ProductTiles<float>& baseline_tiles() {
  static constexpr ProductTiles<float> kTiles = {
      4, 8, 8, compute_tile<Baseline<float>, 8, 2, 4>, kPack<float, float, 8>, kPack<Bfloat16, float, 8>};
  return kTiles;
}

template <>
const ProductTiles<double>& baseline_tiles() {
  static constexpr ProductTiles<double> kTiles = {
      4, 8, 8, compute_tile<Baseline<double>, 8, 2, 4>, kPack<double, double, 8>, {}};
  return kTiles;
}

}  // namespace lockstep::kernels
