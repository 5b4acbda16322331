#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/cuda/elements.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

using Step = kernels::loops::AdamwStep<float>;

template <int kWidth>
__global__ void adamw_packs(int64_t count, float* parameter, const float* gradient, float* mean, float* square,
                            Step s) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) {
    auto p = packs<kWidth>(parameter)[i], m = packs<kWidth>(mean)[i], v = packs<kWidth>(square)[i];
    const auto given = packs<kWidth>(gradient)[i];
    for (int j = 0; j < kWidth; ++j) {
      const float g = given.at[j] * s.gradient_scale;
      m.at[j] = m.at[j] * s.beta1 + g * s.rest1;
      v.at[j] = v.at[j] * s.beta2 + g * g * s.rest2;
      p.at[j] = p.at[j] * s.decay - s.step_size * m.at[j] / (portable::sqrt(v.at[j]) / s.root_correction + s.epsilon);
    }
    packs<kWidth>(parameter)[i] = p;
    packs<kWidth>(mean)[i] = m;
    packs<kWidth>(square)[i] = v;
  }
}

/// A warp takes a part: every parts-th run of as many packs as it has threads.
template <class T, int kWidth>
__global__ void part_squares(int64_t count, int64_t parts, const T* x, double* sums) {
  for (int64_t part = own_warp(); part < parts; part += all_warps()) {
    double own = 0;
    for (int64_t i = part * kWarp + own_lane(); i < count; i += parts * kWarp)
      for (const T& each : packs<kWidth>(x)[i].at) {
        const auto value = static_cast<double>(number(each));
        own += value * value;
      }
    const double sum = warp_sum(own);
    if (own_lane() == 0) sums[part] = sum;
  }
}

constexpr int64_t kPart = 1024, kMostParts = 4096;

}  // namespace

void adamw(int64_t count, float* parameter, const float* gradient, float* mean, float* square, const Step& step) {
  on_elements(
      Element::kFloat32, count,
      [&]<class T, int kWidth>() {
        launch("adamw", adamw_packs<kWidth>, count / kWidth, count / kWidth, parameter, gradient, mean, square, step);
      },
      parameter, gradient, mean, square);
}

int64_t square_parts(int64_t count) { return std::min((count + kPart - 1) / kPart, kMostParts); }

void sum_of_squares(Element element, int64_t count, const void* x, double* sums) {
  const int64_t parts = square_parts(count);
  on_elements(
      element, count,
      [&]<class T, int kWidth>() {
        launch("sum_of_squares", part_squares<T, kWidth>, parts * kWarp, count / kWidth, parts,
               static_cast<const T*>(x), sums);
      },
      x);
}

}  // namespace lockstep::cuda
