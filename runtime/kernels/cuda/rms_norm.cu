#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/cuda/elements.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

template <class T, int kWidth>
__global__ void norm_rows(const T* x, const T* weight, float epsilon, int64_t rows, int64_t size, T* y,
                          float* reciprocals) {
  const auto* scale = packs<kWidth>(weight);
  for (int64_t row = own_warp(); row < rows; row += all_warps()) {
    const auto* in = packs<kWidth>(x + row * size);
    float squares = 0;
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp)
      for (const T& each : in[p].at) squares += number(each) * number(each);
    const float reciprocal = 1.0f / portable::sqrt(warp_sum(squares) / static_cast<float>(size) + epsilon);
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp) {
      const auto from = in[p], by = scale[p];
      Pack<T, kWidth> to;
      for (int j = 0; j < kWidth; ++j) put(to.at[j], number(from.at[j]) * reciprocal * number(by.at[j]));
      packs<kWidth>(y + row * size)[p] = to;
    }
    if (own_lane() == 0) reciprocals[row] = reciprocal;
  }
}

template <class T, int kWidth>
__global__ void input_gradient(const T* gradient, const T* x, const float* reciprocals, const T* weight, int64_t rows,
                               int64_t size, T* dx) {
  const auto* scale = packs<kWidth>(weight);
  for (int64_t row = own_warp(); row < rows; row += all_warps()) {
    const auto *slopes = packs<kWidth>(gradient + row * size), *in = packs<kWidth>(x + row * size);
    const float reciprocal = reciprocals[row];
    float products = 0;
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp) {
      const auto g = slopes[p], from = in[p], by = scale[p];
      for (int j = 0; j < kWidth; ++j)
        products += number(g.at[j]) * number(by.at[j]) * (number(from.at[j]) * reciprocal);
    }
    const float mean = warp_sum(products) / static_cast<float>(size);
    for (int64_t p = own_lane(); p < size / kWidth; p += kWarp) {
      const auto g = slopes[p], from = in[p], by = scale[p];
      Pack<T, kWidth> to;
      for (int j = 0; j < kWidth; ++j) {
        const float normal = number(from.at[j]) * reciprocal;
        put(to.at[j], (number(g.at[j]) * number(by.at[j]) - normal * mean) * reciprocal);
      }
      packs<kWidth>(dx + row * size)[p] = to;
    }
  }
}

/// A thread has a pack of columns in one part of the rows.
template <class T, int kWidth>
__global__ void weight_gradient_parts(const T* gradient, const T* x, const float* reciprocals, int64_t rows,
                                      int64_t size, int64_t parts, float* sums) {
  const int64_t columns = size / kWidth;
  for (int64_t i = own_thread(); i < parts * columns; i += all_threads()) {
    const int64_t part = i / columns, column = i % columns;
    const int64_t end = (part + 1) * rows / parts;
    float own[kWidth] = {};
    for (int64_t row = part * rows / parts; row < end; ++row) {
      const auto g = packs<kWidth>(gradient + row * size)[column], from = packs<kWidth>(x + row * size)[column];
      const float reciprocal = reciprocals[row];
      for (int j = 0; j < kWidth; ++j) own[j] += number(g.at[j]) * (number(from.at[j]) * reciprocal);
    }
    for (int j = 0; j < kWidth; ++j) sums[part * size + column * kWidth + j] = own[j];
  }
}

/// Of the values of a block's threads, in one order: the same bits in all of them. `turn`: another one than the call
/// before's, whose sums some threads may still read.
__device__ float block_sum(float value, int turn) {
  __shared__ float of_warps[2][kThreads / kWarp];
  const float of_warp = warp_sum(value);
  if (own_lane() == 0) of_warps[turn][threadIdx.x / kWarp] = of_warp;
  __syncthreads();
  float sum = 0;
  for (const float& each : of_warps[turn]) sum += each;
  return sum;
}

/// Column number `p` of a thread, of those of a row; its own packs of a row and sums of columns are these.
__device__ int64_t own_column(int p) { return threadIdx.x + p * kThreads; }

template <class T, int kWidth, int kPacks>
struct OwnPacks {
  Pack<T, kWidth> slope[kPacks], x[kPacks];

  __device__ void read(const T* gradient, const T* row, int64_t columns) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (const int64_t column = own_column(p); column < columns)
        slope[p] = packs<kWidth>(gradient)[column], x[p] = packs<kWidth>(row)[column];
  }

  /// Adds to the sums of columns what the row adds to the weight's gradient. Returns the part of what the row has in
  /// common.
  __device__ float add(const Pack<T, kWidth>* weight, float reciprocal, int64_t columns,
                       float (&sums)[kPacks][kWidth]) {
    float products = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (own_column(p) >= columns) continue;
      const auto by = weight[own_column(p)];
      for (int j = 0; j < kWidth; ++j) {
        const float g = number(slope[p].at[j]), normal = number(x[p].at[j]) * reciprocal;
        products += g * number(by.at[j]) * normal;
        sums[p][j] += g * normal;
      }
    }
    return products;
  }

  __device__ void write(const Pack<T, kWidth>* weight, float reciprocal, float mean, int64_t columns, T* dx) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (own_column(p) >= columns) continue;
      const auto by = weight[own_column(p)];
      Pack<T, kWidth> to;
      for (int j = 0; j < kWidth; ++j)
        put(to.at[j],
            (number(slope[p].at[j]) * number(by.at[j]) - number(x[p].at[j]) * reciprocal * mean) * reciprocal);
      packs<kWidth>(dx)[own_column(p)] = to;
    }
  }
};

/// Both gradients, reading everything once: a block takes a part of the rows, every parts-th, its threads kPacks packs
/// of each row, and of the weight's gradient the sums of these columns.
template <class T, int kWidth, int kPacks>
__global__ void both_gradients(const T* gradient, const T* x, const float* reciprocals, const T* weight, int64_t rows,
                               int64_t size, int64_t parts, T* dx, float* sums) {
  const auto* scale = packs<kWidth>(weight);
  const int64_t columns = size / kWidth;
  int turn = 0;
  for (int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
    float own[kPacks][kWidth] = {};
    for (int64_t row = part; row < rows; row += parts, turn = 1 - turn) {
      OwnPacks<T, kWidth, kPacks> of_row;
      of_row.read(gradient + row * size, x + row * size, columns);
      const float products = of_row.add(scale, reciprocals[row], columns, own);
      const float mean = block_sum(products, turn) / static_cast<float>(size);
      of_row.write(scale, reciprocals[row], mean, columns, dx + row * size);
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (own_column(p) < columns)
        for (int j = 0; j < kWidth; ++j) sums[part * size + own_column(p) * kWidth + j] = own[p][j];
  }
}

constexpr int64_t kMostParts = 512;
/// Fewer packs of a row leave most of a block without work.
constexpr int64_t kFewPacks = kThreads / 2;

}  // namespace

void rms_norm(Element element, Rows rows, const void* x, const void* weight, float epsilon, void* y,
              float* reciprocals) {
  on_elements(
      element, rows.size,
      [&]<class T, int kWidth>() {
        launch("rms_norm", norm_rows<T, kWidth>, rows.count * kWarp, static_cast<const T*>(x),
               static_cast<const T*>(weight), epsilon, rows.count, rows.size, static_cast<T*>(y), reciprocals);
      },
      x, weight, y);
}

int64_t norm_parts(Rows rows) { return std::min(rows.count, kMostParts); }

void rms_norm_backward(Element element, Rows rows, const void* gradient, const void* x, const float* reciprocals,
                       const void* weight, void* dx, float* weight_sums) {
  on_elements(
      element, rows.size,
      [&]<class T, int kWidth>() {
        const auto *g = static_cast<const T*>(gradient), *from = static_cast<const T*>(x);
        const auto* by = static_cast<const T*>(weight);
        const int64_t parts = norm_parts(rows), row_packs = rows.size / kWidth;
        const auto at_once = [&](auto kernel) {
          launch("rms_norm_backward", kernel, parts * kThreads, g, from, reciprocals, by, rows.count, rows.size, parts,
                 static_cast<T*>(dx), weight_sums);
        };
        if (row_packs >= kFewPacks && row_packs <= kThreads) return at_once(both_gradients<T, kWidth, 1>);
        if (row_packs > kThreads && row_packs <= 2 * kThreads) return at_once(both_gradients<T, kWidth, 2>);
        if (row_packs > 2 * kThreads && row_packs <= 4 * kThreads) return at_once(both_gradients<T, kWidth, 4>);
        launch("rms_norm_backward", input_gradient<T, kWidth>, rows.count * kWarp, g, from, reciprocals, by, rows.count,
               rows.size, static_cast<T*>(dx));
        launch("rms_norm_backward", weight_gradient_parts<T, kWidth>, parts * (rows.size / kWidth), g, from,
               reciprocals, rows.count, rows.size, parts, weight_sums);
      },
      gradient, x, weight, dx);
}

}  // namespace lockstep::cuda
