#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/cuda/elements.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

/// A thread turns pack after pack, in the order of `out`.
template <class T, int kWidth, int kAligned>
__global__ void turn_packs(const T* x, const float* cosines, const float* sines, float sign, uint32_t total,
                           uint32_t heads, uint32_t length, uint32_t size, HeadStrides strides, T* out) {
  const uint32_t in_head = size / kWidth;
  for (int64_t i = own_thread(); i < total; i += all_threads()) {
    const auto place = static_cast<uint32_t>(i), p = place % in_head, row = place / in_head, head = row % heads;
    const uint32_t position = row / heads % length, batch = row / heads / length;
    const auto from =
        packs<kWidth, kAligned>(x + batch * strides.batch + head * strides.head + position * strides.position)[p];
    const int64_t pair = static_cast<int64_t>(position) * (size / 2) + p * (kWidth / 2);
    Pack<T, kWidth, kAligned> to;
    for (int j = 0; j < kWidth / 2; ++j) {
      const float a = number(from.at[2 * j]), b = number(from.at[2 * j + 1]);
      const float c = cosines[pair + j], s = sign * sines[pair + j];
      put(to.at[2 * j], a * c - b * s);
      put(to.at[2 * j + 1], a * s + b * c);
    }
    packs<kWidth, kAligned>(out)[i] = to;
  }
}

bool is_whole(int64_t stride, int64_t width) { return stride % width == 0; }

}  // namespace

void rotate_pairs(Element element, HeadSizes sizes, HeadStrides strides, const void* x, const float* cosines,
                  const float* sines, bool back, void* out) {
  const int64_t total = sizes.batch * sizes.heads * sizes.length * sizes.size;
  const auto run = [&]<class T, int kWidth, int kAligned>() {
    launch("rotate_pairs", turn_packs<T, kWidth, kAligned>, total / kWidth, static_cast<const T*>(x), cosines, sines,
           back ? -1.0f : 1.0f, total / kWidth, sizes.heads, sizes.length, sizes.size, strides, static_cast<T*>(out));
  };
  const auto with = [&]<class T>(T) {
    const bool packed = is_whole(sizes.size, kWide<T>) && is_whole(strides.batch, kWide<T>) &&
                        is_whole(strides.head, kWide<T>) && is_whole(strides.position, kWide<T>);
    if (packed && are_aligned(x, out)) return run.template operator()<T, kWide<T>, kWide<T>>();
    run.template operator()<T, 2, 1>();
  };
  if (element == Element::kFloat32) return with(float{});
  with(BFloat16{});
}

}  // namespace lockstep::cuda
