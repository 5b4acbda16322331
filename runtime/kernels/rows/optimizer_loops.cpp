#include "runtime/kernels/rows/row_loops.h"
#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

/// One fixed sequence of multiplications, additions, one square root and two divisions per element.
template <class T>
struct Adamw {
  LOCKSTEP_PORTABLE static void run(int64_t count, T* __restrict p, const T* __restrict g, T* __restrict m,
                                    T* __restrict v, AdamwStep<T> s) {
    for (int64_t i = 0; i < count; ++i) {
      const T gradient = g[i] * s.gradient_scale;
      const T mean = m[i] * s.beta1 + gradient * s.rest1;
      const T square = v[i] * s.beta2 + gradient * gradient * s.rest2;
      m[i] = mean;
      v[i] = square;
      p[i] = p[i] * s.decay - s.step_size * mean / (portable::sqrt(square) / s.root_correction + s.epsilon);
    }
  }
};

template <class T>
struct SumOfSquares {
  static constexpr int64_t kLanes = 32;
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* x, double* sum) {
    double lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const auto value = static_cast<double>(x[i + lane]);
        lanes[lane] += value * value;
      }
    double rest = 0;
    for (; i < count; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    for (const double lane : lanes) rest += lane;
    *sum = rest;
  }
};

}  // namespace

template <class T>
void adamw(int64_t count, T* p, const T* g, T* m, T* v, const AdamwStep<T>& step, InstructionSet set) {
  on_instruction_set<Adamw<T>>(set, count, p, g, m, v, step);
}

template <class T>
double sum_of_squares(int64_t count, const T* x) {
  double sum = 0;
  on_best_instruction_set<SumOfSquares<T>>(count, x, &sum);
  return sum;
}

template void adamw(int64_t, float*, const float*, float*, float*, const AdamwStep<float>&, InstructionSet);
template void adamw(int64_t, double*, const double*, double*, double*, const AdamwStep<double>&, InstructionSet);
template double sum_of_squares(int64_t, const float*);
template double sum_of_squares(int64_t, const double*);

}  // namespace lockstep::kernels::loops
