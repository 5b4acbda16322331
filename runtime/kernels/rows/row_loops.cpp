#include "runtime/kernels/rows/row_loops.h"

#include "core/elementary/elementary.h"
#include "runtime/kernels/simd/best_instruction_set.h"
#include "runtime/kernels/simd/lanes.h"

namespace lockstep::kernels::loops {
namespace {

template <class T>
struct RmsNorm {
  LOCKSTEP_PORTABLE static void run(Rows rows, const T* x, const T* weight, T* __restrict y, T* __restrict reciprocal,
                                    T epsilon) {
    for (int64_t r = 0; r < rows.count; ++r, x += rows.width, y += rows.width) {
      const T sum = lane_sum<T>(
          rows.width, [x](int64_t i) __attribute__((always_inline)) { return x[i] * x[i]; });
      const T scale = T(1) / portable::sqrt(sum / static_cast<T>(rows.width) + epsilon);
      reciprocal[r] = scale;
      for (int64_t i = 0; i < rows.width; ++i) y[i] = x[i] * scale * weight[i];
    }
  }
};

/// With n = x r: dx = r (g w - n mean(g w n)), dw = sum over rows of g n, if there is one.
template <class T>
struct RmsNormBackward {
  LOCKSTEP_PORTABLE static void run(Rows rows, const T* g, const T* x, const T* reciprocal, const T* weight,
                                    T* __restrict dx, T* __restrict dw) {
    for (int64_t r = 0; r < rows.count; ++r, g += rows.width, x += rows.width, dx += rows.width) {
      const T scale = reciprocal[r];
      const T sum = lane_sum<T>(
          rows.width, [ g, weight, x ](int64_t i) __attribute__((always_inline)) { return g[i] * weight[i] * x[i]; });
      const T mean = sum * scale * scale / static_cast<T>(rows.width);
      for (int64_t i = 0; i < rows.width; ++i) dx[i] = scale * (g[i] * weight[i] - x[i] * mean);
      if (dw == nullptr) continue;
      for (int64_t i = 0; i < rows.width; ++i) dw[i] += g[i] * x[i] * scale;
    }
  }
};

template <class T>
struct ExponentialSum {
  LOCKSTEP_PORTABLE static void run(Rows rows, const T* logits, const T* shift, T* __restrict sum) {
    for (int64_t r = 0; r < rows.count; ++r, logits += rows.width) {
      const T s = shift[r];
      sum[r] = lane_sum<T>(
          rows.width,
          [ logits, s ](int64_t i) __attribute__((always_inline)) { return elementary::normal_exp(logits[i] - s); });
    }
  }
};

template <class T>
struct CrossEntropyBackward {
  LOCKSTEP_PORTABLE static void run(Rows rows, const T* gradient, const T* logits, const T* log_sum,
                                    const int64_t* target, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, logits += rows.width, out += rows.width) {
      const T g = gradient[r], shift = log_sum[r];
      for (int64_t i = 0; i < rows.width; ++i) out[i] = elementary::normal_exp(logits[i] - shift) * g;
      if (target[r] >= 0) out[target[r]] -= g;
    }
  }
};

}  // namespace

template <class T>
void rms_norm(Rows rows, const T* x, const T* weight, T* y, T* reciprocal, T epsilon, InstructionSet set) {
  on_instruction_set<RmsNorm<T>>(set, rows, x, weight, y, reciprocal, epsilon);
}

template <class T>
void rms_norm_backward(Rows rows, const T* g, const T* x, const T* reciprocal, const T* weight, T* dx, T* dw,
                       InstructionSet set) {
  on_instruction_set<RmsNormBackward<T>>(set, rows, g, x, reciprocal, weight, dx, dw);
}

template <class T>
void exponential_sum(Rows rows, const T* logits, const T* shift, T* sum) {
  on_best_instruction_set<ExponentialSum<T>>(rows, logits, shift, sum);
}

template <class T>
void cross_entropy_backward(Rows rows, const T* gradient, const T* logits, const T* log_sum, const int64_t* target,
                            T* out, InstructionSet set) {
  on_instruction_set<CrossEntropyBackward<T>>(set, rows, gradient, logits, log_sum, target, out);
}

#define LOCKSTEP_INSTANTIATE(T)                                                                          \
  template void rms_norm(Rows, const T*, const T*, T*, T*, T, InstructionSet);                           \
  template void rms_norm_backward(Rows, const T*, const T*, const T*, const T*, T*, T*, InstructionSet); \
  template void exponential_sum(Rows, const T*, const T*, T*);                                           \
  template void cross_entropy_backward(Rows, const T*, const T*, const T*, const int64_t*, T*, InstructionSet)
LOCKSTEP_INSTANTIATE(float);
LOCKSTEP_INSTANTIATE(double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::loops
