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
    const int64_t tile = width < kTile ? width : kTile;
    for (int64_t t = 0; t < width; t += tile) stages(x + t, tile, 1);
    stages(x, width, tile);
    for (int64_t i = 0; i < width; ++i) x[i] *= scale;
  }

  /// Those of x[0 .. width) whose pairs lie `first` apart or further. Up to 8 apart a vector holds both of a pair:
  /// groups of 16 take those four stages at once. Beyond, two stages a pass.
  LOCKSTEP_PORTABLE static void stages(T* x, int64_t width, int64_t first) {
    int64_t h = first;
    if (h == 1 && width >= 16) {
      for (int64_t i = 0; i < width; i += 16) sixteen(x + i);
      h = 16;
    }
    for (; 4 * h <= width; h *= 4) two_stages(x, width, h);
    for (; 2 * h <= width; h *= 2) one_stage(x, width, h);
  }

  using Vector = T __attribute__((vector_size(16 * sizeof(T)), aligned(sizeof(T))));

  /// Four stages as additions of vectors: each lane becomes the pair's first and its second times 1 or -1, which is
  /// exact.
  LOCKSTEP_PORTABLE static void sixteen(T* x) {
    Vector v, s;
    __builtin_memcpy(&v, x, sizeof(v));
    __builtin_memcpy(&s, kSigns[0], sizeof(s));
    v = __builtin_shufflevector(v, v, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14) +
        s * __builtin_shufflevector(v, v, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15);
    __builtin_memcpy(&s, kSigns[1], sizeof(s));
    v = __builtin_shufflevector(v, v, 0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13) +
        s * __builtin_shufflevector(v, v, 2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15);
    __builtin_memcpy(&s, kSigns[2], sizeof(s));
    v = __builtin_shufflevector(v, v, 0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11, 8, 9, 10, 11) +
        s * __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7, 12, 13, 14, 15, 12, 13, 14, 15);
    __builtin_memcpy(&s, kSigns[3], sizeof(s));
    v = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7) +
        s * __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
    __builtin_memcpy(x, &v, sizeof(v));
  }

  /// -1 for the second one of each pair.
  static constexpr T kSigns[4][16] = {{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1},
                                      {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1},
                                      {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1},
                                      {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1}};

  LOCKSTEP_PORTABLE static void one_stage(T* x, int64_t width, int64_t h) {
    for (int64_t start = 0; start < width; start += 2 * h) {
      T *low = x + start, *high = low + h;
      for (int64_t i = 0; i < h; ++i) {
        const T a = low[i], b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  }

  /// Stages h and 2 h in one pass over memory.
  LOCKSTEP_PORTABLE static void two_stages(T* x, int64_t width, int64_t h) {
    for (int64_t start = 0; start < width; start += 4 * h) {
      T *p = x + start, *q = p + h, *r = q + h, *s = r + h;
      for (int64_t i = 0; i < h; ++i) {
        const T a = p[i] + q[i], b = p[i] - q[i], c = r[i] + s[i], d = r[i] - s[i];
        p[i] = a + c;
        q[i] = b + d;
        r[i] = a - c;
        s[i] = b - d;
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
