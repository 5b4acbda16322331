#include "runtime/kernels/rows/hadamard_loops.h"

#include "core/elementary/portable.h"
#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

/// A row's first stages are those of its tiles, which stay in the nearest cache.
constexpr int64_t kTile = 2048;

template <class T>
struct Hadamard {
  LOCKSTEP_PORTABLE static void run(int64_t count, int64_t width, T scale, T* rows) {
    for (int64_t r = 0; r < count; ++r) row(rows + r * width, width, scale);
  }

 private:
  LOCKSTEP_PORTABLE static void row(T* x, int64_t width, T scale) {
    if (width <= kTile) return stages(x, width, 1, scale);
    for (int64_t t = 0; t < width; t += kTile) stages(x + t, kTile, 1, T(1));
    stages(x, width, kTile, scale);
  }

  /// Those of x[0 .. width) whose pairs lie `first` apart or further, the last one's results times `scale`. (Times 1
  /// changes nothing.) Groups of 16 take the first four stages at once; then come two stages a pass.
  LOCKSTEP_PORTABLE static void stages(T* x, int64_t width, int64_t first, T scale) {
    int64_t h = first;
    if (h == 1 && width >= 16) {
      const T factor = width == 16 ? scale : T(1);
      for (int64_t i = 0; i < width; i += 16) sixteen(x + i, factor);
      h = 16;
    }
    for (; 4 * h <= width; h *= 4) two_stages(x, width, h, 4 * h == width ? scale : T(1));
    if (2 * h <= width) one_stage(x, width, h, scale);
  }

  using Vector = T __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T))));

  /// Stages 1, 2 and 4 within vectors of eight, 8 between two of them.
  LOCKSTEP_PORTABLE static void sixteen(T* x, T scale) {
    Vector low, high;
    __builtin_memcpy(&low, x, sizeof(low));
    __builtin_memcpy(&high, x + 8, sizeof(high));
    within(low);
    within(high);
    const Vector sum = (low + high) * scale, difference = (low - high) * scale;
    __builtin_memcpy(x, &sum, sizeof(sum));
    __builtin_memcpy(x + 8, &difference, sizeof(difference));
  }

  /// Of each lane and its partner the first becomes the sum, the second the first less the second.
  LOCKSTEP_PORTABLE static void within(Vector& v) {
    Vector partner = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
    v = __builtin_shufflevector(v + partner, partner - v, 0, 9, 2, 11, 4, 13, 6, 15);
    partner = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    v = __builtin_shufflevector(v + partner, partner - v, 0, 1, 10, 11, 4, 5, 14, 15);
    partner = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v = __builtin_shufflevector(v + partner, partner - v, 0, 1, 2, 3, 12, 13, 14, 15);
  }

  LOCKSTEP_PORTABLE static void one_stage(T* x, int64_t width, int64_t h, T scale) {
    for (int64_t start = 0; start < width; start += 2 * h) {
      T *low = x + start, *high = low + h;
      for (int64_t i = 0; i < h; ++i) {
        const T a = low[i], b = high[i];
        low[i] = (a + b) * scale;
        high[i] = (a - b) * scale;
      }
    }
  }

  /// Stages h and 2 h in one pass over memory.
  LOCKSTEP_PORTABLE static void two_stages(T* x, int64_t width, int64_t h, T scale) {
    for (int64_t start = 0; start < width; start += 4 * h) {
      T *p = x + start, *q = p + h, *r = q + h, *s = r + h;
      for (int64_t i = 0; i < h; ++i) {
        const T a = p[i] + q[i], b = p[i] - q[i], c = r[i] + s[i], d = r[i] - s[i];
        p[i] = (a + c) * scale;
        q[i] = (b + d) * scale;
        r[i] = (a - c) * scale;
        s[i] = (b - d) * scale;
      }
    }
  }
};

}  // namespace

template <class T>
void hadamard(int64_t count, int64_t width, T scale, T* rows, InstructionSet set) {
  on_instruction_set<Hadamard<T>>(set, count, width, scale, rows);
}

template void hadamard(int64_t, int64_t, float, float*, InstructionSet);
template void hadamard(int64_t, int64_t, double, double*, InstructionSet);

}  // namespace lockstep::kernels::loops
