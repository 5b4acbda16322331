#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/cuda/elements.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

template <class T, int kWidth>
__global__ void gate_rows(const T* both, int64_t rows, int64_t size, T* out) {
  for (int64_t row = own_warp(); row < rows; row += all_warps()) {
    const auto *gates = packs<kWidth>(both + 2 * row * size), *ups = packs<kWidth>(both + (2 * row + 1) * size);
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp) {
      const auto gate = gates[p], up = ups[p];
      Pack<T, kWidth> to;
      for (int j = 0; j < kWidth; ++j)
        put(to.at[j], number(gate.at[j]) * sigmoid(number(gate.at[j])) * number(up.at[j]));
      packs<kWidth>(out + row * size)[p] = to;
    }
  }
}

template <class T, int kWidth>
__global__ void gate_gradients(const T* gradient, const T* both, int64_t rows, int64_t size, T* out) {
  for (int64_t row = own_warp(); row < rows; row += all_warps()) {
    const int64_t gate_at = 2 * row * size, up_at = gate_at + size;
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp) {
      const auto slope = packs<kWidth>(gradient + row * size)[p];
      const auto gate = packs<kWidth>(both + gate_at)[p], up = packs<kWidth>(both + up_at)[p];
      Pack<T, kWidth> to_gate, to_up;
      for (int j = 0; j < kWidth; ++j) {
        const float g = number(slope.at[j]), x = number(gate.at[j]), open = sigmoid(x);
        put(to_gate.at[j], g * number(up.at[j]) * open * (1.0f + x * (1.0f - open)));
        put(to_up.at[j], g * (x * open));
      }
      packs<kWidth>(out + gate_at)[p] = to_gate;
      packs<kWidth>(out + up_at)[p] = to_up;
    }
  }
}

}  // namespace

void swiglu(Element element, Rows rows, const void* both, void* out) {
  on_elements(
      element, rows.size,
      [&]<class T, int kWidth>() {
        launch("swiglu", gate_rows<T, kWidth>, rows.count * kWarp, static_cast<const T*>(both), rows.count, rows.size,
               static_cast<T*>(out));
      },
      both, out);
}

void swiglu_backward(Element element, Rows rows, const void* gradient, const void* both, void* out) {
  on_elements(
      element, rows.size,
      [&]<class T, int kWidth>() {
        launch("swiglu_backward", gate_gradients<T, kWidth>, rows.count * kWarp, static_cast<const T*>(gradient),
               static_cast<const T*>(both), rows.count, rows.size, static_cast<T*>(out));
      },
      gradient, both, out);
}

}  // namespace lockstep::cuda
