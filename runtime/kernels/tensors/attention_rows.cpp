#include "runtime/kernels/tensors/attention_rows.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <vector>

#include "core/error.h"
#include "runtime/kernels/attention/attention_loops.h"
#include "runtime/kernels/tensors/cpu_kernels.h"

namespace lockstep::kernels {
namespace {

/// More tokens than any sample has; differences of places and rows do not overflow.
constexpr int64_t kMostPlaces = int64_t{1} << 48;

/// Of a stream, which has 2^63.
constexpr int64_t kMostElements = int64_t{1} << 62;

}  // namespace

at::Tensor checked_places(const at::Tensor& places, int64_t batch, int64_t rows) {
  if (places.scalar_type() != c10::kLong || places.dim() != 2 || places.size(0) != batch || places.size(1) != rows)
    fail<BadInput>("attention in documents: places are {} {}, expected Long [{}, {}]",
                   c10::toString(places.scalar_type()), c10::str(places.sizes()), batch, rows);
  auto dense = places.contiguous();
  const auto read = dense.cpu();  // what lies on a GPU is waited for
  const auto* data = read.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < batch * rows; ++i) {
    const bool is_known = data[i] >= 0 && data[i] < kMostPlaces;
    if (is_known && (i % rows == 0 || data[i] <= data[i - 1] + 1)) continue;
    fail<BadInput>(
        "attention in documents: row {} of sample {} (of those here) has place {} in its document, expected one from 0 "
        "to {}",
        i % rows, i / rows, data[i], i % rows == 0 ? kMostPlaces - 1 : data[i - 1] + 1);
  }
  return dense;
}

bool drops_weights(double dropout) {
  if (!(dropout >= 0 && dropout <= 1)) fail<BadInput>("dropout probability {} should be in [0, 1]", dropout);
  return dropout > 0;
}

at::Tensor checked_draws(const at::Tensor& draws, at::IntArrayRef query, int64_t first_row, int64_t keys) {
  const std::vector<int64_t> expected{query[0], query[1], query[2], kDrawsOfRow};
  if (!draws.defined()) fail<BadInput>("attention drops some of its weights, and has no draws that say which");
  if (draws.scalar_type() != c10::kLong || draws.sizes() != c10::IntArrayRef(expected))
    fail<BadInput>("attention with dropout: draws are {} {}, expected Long {}", c10::toString(draws.scalar_type()),
                   c10::str(draws.sizes()), c10::str(c10::IntArrayRef(expected)));
  auto dense = draws.contiguous();
  const auto read = dense.cpu();
  const auto* data = read.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < draws.numel() / kDrawsOfRow; ++i) {
    const int64_t place = first_row + i % query[2], own = data[i * kDrawsOfRow + 2];
    if (own >= 0 && own < kMostElements && own >= place && own - place < kMostElements - keys) continue;
    fail<BadInput>("attention with dropout: row {} (of those here) draws from element {} - {} on, and has {} keys",
                   i % query[2], own, place, keys);
  }
  return dense;
}

Tensor attention_draws(const Tensor& query, int64_t keys, int64_t first_row) {
  const auto options = query.options().dtype(c10::kLong);
  const int64_t rows = query.size(0) * query.size(1) * query.size(2);
  const auto places = first_row + at::arange(query.size(2), options).repeat({query.size(0) * query.size(1)});
  const auto own = at::arange(rows, options) * keys + places;
  const auto names = at::randint(0, kMostElements, {2}, options).expand({rows, 2});
  return at::cat({names, own.unsqueeze(1)}, 1).view({query.size(0), query.size(1), query.size(2), kDrawsOfRow});
}

}  // namespace lockstep::kernels
