#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/cuda/elements.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

template <class T, int kWidth>
__global__ void sum_rows(const T* logits, const float* shift, int64_t rows, int64_t size, float* sums) {
  for (int64_t row = own_warp(); row < rows; row += all_warps()) {
    const auto* in = packs<kWidth>(logits + row * size);
    const float least = shift[row];
    float own = 0;
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp)
      for (const T& each : in[p].at) own += expf(number(each) - least);
    const float sum = warp_sum(own);
    if (own_lane() == 0) sums[row] = sum;
  }
}

template <class T, int kWidth>
__global__ void row_gradients(const float* gradient, const T* logits, const float* log_sum, const int64_t* target,
                              int64_t rows, int64_t size, T* out) {
  for (int64_t row = own_warp(); row < rows; row += all_warps()) {
    const float slope = gradient[row], total = log_sum[row];
    const int64_t wanted = target[row];
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp) {
      const auto from = packs<kWidth>(logits + row * size)[p];
      Pack<T, kWidth> to;
      for (int j = 0; j < kWidth; ++j) {
        const float probability = expf(number(from.at[j]) - total);
        put(to.at[j], probability * slope - (p * kWidth + j == wanted ? slope : 0.0f));
      }
      packs<kWidth>(out + row * size)[p] = to;
    }
  }
}

}  // namespace

void exponential_sum(Element element, Rows rows, const void* logits, const float* shift, float* sums) {
  on_elements(
      element, rows.size,
      [&]<class T, int kWidth>() {
        launch("exponential_sum", sum_rows<T, kWidth>, rows.count * kWarp, static_cast<const T*>(logits), shift,
               rows.count, rows.size, sums);
      },
      logits);
}

void cross_entropy_backward(Element element, Rows rows, const float* gradient, const void* logits, const float* log_sum,
                            const int64_t* target, void* out) {
  on_elements(
      element, rows.size,
      [&]<class T, int kWidth>() {
        launch("cross_entropy_backward", row_gradients<T, kWidth>, rows.count * kWarp, gradient,
               static_cast<const T*>(logits), log_sum, target, rows.count, rows.size, static_cast<T*>(out));
      },
      logits, out);
}

}  // namespace lockstep::cuda
