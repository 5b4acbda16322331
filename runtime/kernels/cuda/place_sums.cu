#include "core/digest/place_mix.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

__device__ uint64_t index_of(const PlaceBox& box, int64_t element) {
  uint64_t index = box.first;
  for (int dim = box.dims - 1; dim > 0; --dim) {
    index += static_cast<uint64_t>(element % box.size[dim] * box.stride[dim]);
    element /= box.size[dim];
  }
  return box.dims == 0 ? index : index + static_cast<uint64_t>(element * box.stride[0]);
}

/// A warp takes a part: every parts-th run of as many elements as it has threads. Sums are modulo 2^64: in any order.
__global__ void part_places(int64_t count, int64_t parts, const uint32_t* x, uint64_t key, PlaceBox box, uint64_t* lows,
                            uint64_t* highs) {
  for (int64_t part = own_warp(); part < parts; part += all_warps()) {
    uint64_t low = 0, high = 0;
    for (int64_t i = part * kWarp + own_lane(); i < count; i += parts * kWarp)
      place::add(key, index_of(box, i), x[i], low, high);
    const uint64_t all_low = warp_sum(low), all_high = warp_sum(high);
    if (own_lane() == 0) lows[part] = all_low, highs[part] = all_high;
  }
}

}  // namespace

void place_sums(int64_t count, const uint32_t* x, uint64_t key, const PlaceBox& box, uint64_t* lows, uint64_t* highs) {
  const int64_t parts = square_parts(count);
  launch("place_sums", part_places, parts * kWarp, count, parts, x, key, box, lows, highs);
}

}  // namespace lockstep::cuda
