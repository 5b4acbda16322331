// Philox4x32-10 of docs/rng.md in LibTorch's ops on int64: a word is one number below 2^32, and products wrap around.
#include "runtime/kernels/tensors/drawn_factors.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <array>
#include <cmath>

#include "runtime/kernels/tensors/attention_rows.h"
#include "runtime/kernels/tensors/widened.h"

namespace lockstep::composed {
namespace {

using at::Tensor;

constexpr int64_t kWord = 0xffffffff;

Tensor low(const Tensor& x) { return x.bitwise_and(kWord); }
Tensor high(const Tensor& x) { return low(x.__rshift__(32)); }

/// Word element mod 4 of block element / 4, of elements below 2^62.
Tensor words(const Tensor& seed, const Tensor& stream, const Tensor& element) {
  const auto index = element.__rshift__(2);
  std::array<Tensor, 4> c{low(index), high(index), low(stream), high(stream)};
  auto key0 = low(seed), key1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const auto product0 = c[0] * int64_t{0xd2511f53}, product1 = c[2] * int64_t{0xcd9e8d57};
    c = {high(product1).bitwise_xor(c[1]).bitwise_xor(key0), low(product1),
         high(product0).bitwise_xor(c[3]).bitwise_xor(key1), low(product0)};
    key0 = low(key0 + int64_t{0x9e3779b9}), key1 = low(key1 + int64_t{0xbb67ae85});
  }
  const auto place = element.bitwise_and(3);
  auto word = c[0].expand_as(element);
  for (int i = 1; i < 4; ++i) word = at::where(place.eq(i), c[static_cast<size_t>(i)], word);
  return word;
}

}  // namespace

Tensor dropout_factors(const std::optional<Tensor>& draws, double dropout, const Tensor& query, const Tensor& key,
                       int64_t first_row) {
  if (!kernels::drops_weights(dropout)) return {};
  const bool is_read = !draws || !draws->defined() || draws->is_cpu();
  const auto given =
      is_read ? kernels::checked_draws(draws.value_or(Tensor()), query.sizes(), first_row, key.size(2)) : *draws;
  const auto count = [&](int64_t size) { return at::arange(size, given.options()); };
  const auto shift = count(key.size(2)) - (count(query.size(2)).unsqueeze(1) + first_row);
  const double kept = 1 - dropout;
  const auto limit = static_cast<int64_t>(std::nearbyint(std::ldexp(kept, 32)));
  const auto dtype = kernels::widened(query).scalar_type();
  auto factors = at::empty({query.size(0), query.size(1), query.size(2), key.size(2)}, query.options().dtype(dtype));
  for (int64_t sample = 0; sample < query.size(0); ++sample)
    for (int64_t head = 0; head < query.size(1); ++head) {
      const auto part = [&](int64_t i) { return given[sample][head].select(1, i).unsqueeze(1); };
      factors[sample][head].copy_(words(part(0), part(1), part(2) + shift) < limit);
    }
  return factors.mul_(kept > 0 ? 1 / kept : 0);
}

}  // namespace lockstep::composed
