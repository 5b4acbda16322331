#pragma once
#include <cmath>

#include "core/elementary/elementary.h"
#include "runtime/kernels/rows/row_loops.h"
#include "runtime/kernels/simd/lanes_oracle.h"

/// What loops.h computes, one number after the other. Slow; for tests and the self-test at start.
namespace lockstep::kernels {

template <class T>
void rms_norm_oracle(loops::Rows rows, const T* x, const T* weight, T* y, T* reciprocal, T epsilon) {
  for (int64_t r = 0; r < rows.count; ++r) {
    const T* row = x + r * rows.width;
    const T sum = lanes_oracle<T>(0, rows.width, [&](T so_far, int64_t i) {
      const T square = row[i] * row[i];
      return so_far + square;
    });
    reciprocal[r] = T(1) / std::sqrt(sum / static_cast<T>(rows.width) + epsilon);
    for (int64_t i = 0; i < rows.width; ++i) {
      const T normed = row[i] * reciprocal[r];
      y[r * rows.width + i] = normed * weight[i];
    }
  }
}

template <class T>
void rms_norm_backward_oracle(loops::Rows rows, const T* g, const T* x, const T* reciprocal, const T* weight, T* dx,
                              T* dw) {
  for (int64_t r = 0; r < rows.count; ++r)
    for (int64_t i = 0; i < rows.width; ++i) {
      const int64_t at = r * rows.width;
      const T sum = lanes_oracle<T>(0, rows.width, [&](T so_far, int64_t j) {
        const T weighted = g[at + j] * weight[j], term = weighted * x[at + j];
        return so_far + term;
      });
      const T mean = sum * reciprocal[r] * reciprocal[r] / static_cast<T>(rows.width);
      const T weighted = g[at + i] * weight[i], along = x[at + i] * mean, product = g[at + i] * x[at + i];
      dx[at + i] = reciprocal[r] * (weighted - along);
      dw[i] += product * reciprocal[r];
    }
}

template <class T>
void cross_entropy_backward_oracle(loops::Rows rows, const T* gradient, const T* logits, const T* log_sum,
                                   const int64_t* target, T* out) {
  for (int64_t r = 0; r < rows.count; ++r)
    for (int64_t i = 0; i < rows.width; ++i) {
      const T term = elementary::normal_exp(logits[r * rows.width + i] - log_sum[r]) * gradient[r];
      out[r * rows.width + i] = i == target[r] ? term - gradient[r] : term;
    }
}

template <class T>
void swiglu_oracle(loops::Rows rows, const T* both, T* out) {
  for (int64_t r = 0; r < rows.count; ++r)
    for (int64_t i = 0; i < rows.width; ++i) {
      const T gate = both[2 * r * rows.width + i], up = both[(2 * r + 1) * rows.width + i];
      const T activated = gate / (T(1) + elementary::normal_exp(-gate));
      out[r * rows.width + i] = activated * up;
    }
}

template <class T>
void swiglu_backward_oracle(loops::Rows rows, const T* gradient, const T* both, T* out) {
  for (int64_t r = 0; r < rows.count; ++r)
    for (int64_t i = 0; i < rows.width; ++i) {
      const int64_t at = 2 * r * rows.width + i;
      const T gate = both[at], up = both[at + rows.width], g = gradient[r * rows.width + i];
      const T s = T(1) / (T(1) + elementary::normal_exp(-gate));
      const T rest = gate * (T(1) - s), slope = g * up * s;
      out[at] = slope * (T(1) + rest);
      out[at + rows.width] = g * (gate * s);
    }
}

/// x and y are [length, heads, size], contiguous, of one batch.
template <class T>
void rotate_pairs_oracle(int64_t length, int64_t heads, int64_t size, const T* x, const T* cosines, const T* sines,
                         T sign, T* y) {
  for (int64_t l = 0; l < length; ++l)
    for (int64_t i = 0; i < heads * size; i += 2) {
      const int64_t at = l * heads * size + i, table = l * (size / 2) + i % size / 2;
      const T sine = sign * sines[table], cosine = cosines[table];
      const T even_cosine = x[at] * cosine, odd_sine = x[at + 1] * sine;
      const T even_sine = x[at] * sine, odd_cosine = x[at + 1] * cosine;
      y[at] = even_cosine - odd_sine;
      y[at + 1] = even_sine + odd_cosine;
    }
}

template <class T>
void adamw_oracle(int64_t count, T* p, const T* g, T* m, T* v, const loops::AdamwStep<T>& s) {
  for (int64_t i = 0; i < count; ++i) {
    const T gradient = g[i] * s.gradient_scale;
    const T kept = m[i] * s.beta1, added = gradient * s.rest1;
    const T kept_square = v[i] * s.beta2, square = gradient * gradient, added_square = square * s.rest2;
    m[i] = kept + added;
    v[i] = kept_square + added_square;
    const T root = std::sqrt(v[i]) / s.root_correction, decayed = p[i] * s.decay;
    const T step = s.step_size * m[i] / (root + s.epsilon);
    p[i] = decayed - step;
  }
}

}  // namespace lockstep::kernels
