#include "core/elementary/elementary.h"
#include "runtime/kernels/rows/row_loops.h"
#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

template <class T>
struct Swiglu {
  LOCKSTEP_PORTABLE static void run(Rows rows, const T* both, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, both += 2 * rows.width, out += rows.width) {
      const T *gate = both, *up = both + rows.width;
      for (int64_t i = 0; i < rows.width; ++i) out[i] = gate[i] / (T(1) + elementary::normal_exp(-gate[i])) * up[i];
    }
  }
};

/// With s = 1 / (1 + e^-gate): d up = g gate s, d gate = g up s (1 + gate (1 - s)).
template <class T>
struct SwigluBackward {
  LOCKSTEP_PORTABLE static void run(Rows rows, const T* g, const T* both, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, g += rows.width, both += 2 * rows.width, out += 2 * rows.width) {
      const T *gate = both, *up = both + rows.width;
      for (int64_t i = 0; i < rows.width; ++i) {
        const T s = T(1) / (T(1) + elementary::normal_exp(-gate[i]));
        out[i] = g[i] * up[i] * s * (T(1) + gate[i] * (T(1) - s));
        out[i + rows.width] = g[i] * (gate[i] * s);
      }
    }
  }
};

template <class T>
struct RotatePairs {
  LOCKSTEP_PORTABLE static void run(HeadShape shape, const T* x, const T* cosines, const T* sines, T sign,
                                    T* __restrict y) {
    const int64_t pairs = shape.size / 2;
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t l = 0; l < shape.length; ++l)
        for (int64_t h = 0; h < shape.heads; ++h, y += shape.size)
          turn(pairs, x + b * shape.batch_stride + l * shape.length_stride + h * shape.head_stride, cosines + l * pairs,
               sines + l * pairs, sign, -sign, y);
  }

 private:
  /// Two sums. Of a difference beside a sum GCC 12 makes vfmaddsub, whatever -ffp-contract says.
  LOCKSTEP_PORTABLE static void turn(int64_t pairs, const T* x, const T* cosines, const T* sines, T sign, T other_sign,
                                     T* __restrict y) {
    for (int64_t i = 0; i < pairs; ++i) {
      const T even = x[2 * i], odd = x[2 * i + 1];
      y[2 * i] = even * cosines[i] + odd * (other_sign * sines[i]);
      y[2 * i + 1] = even * (sign * sines[i]) + odd * cosines[i];
    }
  }
};

}  // namespace

template <class T>
void swiglu(Rows rows, const T* both, T* out, InstructionSet set) {
  on_instruction_set<Swiglu<T>>(set, rows, both, out);
}

template <class T>
void swiglu_backward(Rows rows, const T* gradient, const T* both, T* out, InstructionSet set) {
  on_instruction_set<SwigluBackward<T>>(set, rows, gradient, both, out);
}

template <class T>
void rotate_pairs(const HeadShape& shape, const T* x, const T* cosines, const T* sines, T sign, T* y,
                  InstructionSet set) {
  on_instruction_set<RotatePairs<T>>(set, shape, x, cosines, sines, sign, y);
}

#define LOCKSTEP_INSTANTIATE(T)                                                \
  template void swiglu(Rows, const T*, T*, InstructionSet);                    \
  template void swiglu_backward(Rows, const T*, const T*, T*, InstructionSet); \
  template void rotate_pairs(const HeadShape&, const T*, const T*, const T*, T, T*, InstructionSet)
LOCKSTEP_INSTANTIATE(float);
LOCKSTEP_INSTANTIATE(double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::loops
