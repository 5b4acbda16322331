#include "models/rope.h"

#include <ATen/Functions.h>

#include "core/elementary/elementary.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::models {
namespace {

constexpr double kTwoPi = 6.283185307179586;

/// Llama 3.1: wavelengths above original / low are stretched by the factor, those below original / high kept, and the
/// ones between blended linearly in original / wavelength.
double scaled(double frequency, const RopeOptions& options) {
  const double turns = static_cast<double>(options.original_length) * frequency / kTwoPi;
  if (turns > options.high_frequency_factor) return frequency;
  if (turns < options.low_frequency_factor) return frequency / options.scaling_factor;
  const double blend =
      (turns - options.low_frequency_factor) / (options.high_frequency_factor - options.low_frequency_factor);
  return (1 - blend) * frequency / options.scaling_factor + blend * frequency;
}

}  // namespace

RopeTables rope_tables(const RopeOptions& options, int64_t length) {
  const int64_t pairs = options.head_size / 2;
  RopeTables tables{at::empty({length, pairs}), at::empty({length, pairs})};
  auto* cosines = tables.cosines.mutable_data_ptr<float>();
  auto* sines = tables.sines.mutable_data_ptr<float>();
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const double exponent = static_cast<double>(2 * pair) / static_cast<double>(options.head_size);
    const double frequency = scaled(elementary::exp(-exponent * elementary::log(options.theta)), options);
    for (int64_t position = 0; position < length; ++position) {
      const auto angle = elementary::sin_cos(static_cast<double>(position) * frequency);
      cosines[position * pairs + pair] = static_cast<float>(angle.cos);
      sines[position * pairs + pair] = static_cast<float>(angle.sin);
    }
  }
  return tables;
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
  return mesh_ops::rotate_pairs(x, cosines, sines);
}

}  // namespace lockstep::models
