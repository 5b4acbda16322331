#pragma once
#include <ATen/Functions.h>
#include <fmt/ranges.h>

#include <cmath>
#include <span>

#include "core/digest/digest.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"

/// Inputs and digests of golden bits (tests/support/golden_lines.h).
namespace lockstep::testing {

/// SplitMix64 (Steele, Lea and Flood, 2014): inputs are a closed form of their own, so that another random generator
/// changes its own golden bits and no others.
inline uint64_t split_mix(uint64_t index) {
  uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/// Numbers of both signs below 2, of 53 bits and eight magnitudes, rounded to `dtype` (16 bits: through float): sums of
/// them round in every dtype, so that their order shows. `stream` tells the operands of a call apart.
inline at::Tensor golden_numbers(c10::IntArrayRef sizes, c10::ScalarType dtype, uint64_t stream) {
  const auto numbers = at::empty(sizes, c10::kDouble);
  auto* out = numbers.mutable_data_ptr<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    const uint64_t word = split_mix(stream << 32 | static_cast<uint64_t>(i));
    const auto fraction = static_cast<double>(static_cast<int64_t>(word >> 11) - (int64_t{1} << 52));
    out[i] = std::ldexp(fraction, -51 - static_cast<int>(word % 8));
  }
  return dtype == c10::kDouble ? numbers : numbers.to(c10::kFloat).to(dtype);
}

/// Adds a tensor's dtype, sizes and values in row-major order; all NaN count as one.
inline void add_to(Digester& digester, const at::Tensor& tensor) {
  const auto plain = is_sharded(tensor) ? gather(tensor) : tensor;
  const auto values =
      (plain.is_floating_point() ? plain.masked_fill(at::isnan(plain), std::nan("")) : plain).contiguous();
  digester.update(fmt::format("{} [{}]", static_cast<int>(values.scalar_type()), fmt::join(values.sizes(), ", ")));
  digester.update(std::span(static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()));
}

}  // namespace lockstep::testing
