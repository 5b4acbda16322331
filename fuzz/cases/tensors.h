#pragma once
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/context/world.h"
#include "runtime/dispatch/backend.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::testing {

/// Small integers, different at every index: sums of a few hundred are exact in every dtype but the 16-bit ones.
inline at::Tensor exact_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype = c10::kFloat, int64_t modulus = 61) {
  const int64_t count = c10::multiply_integers(sizes);
  return at::arange(count).mul(7).add(3).remainder(modulus).sub(modulus / 2).reshape(sizes).to(dtype);
}

/// A view of one dimension, in the order of memory. Throws where elements have gaps between them.
inline at::Tensor flat_as_it_lies(const at::Tensor& tensor) {
  std::vector<int64_t> dims(static_cast<size_t>(tensor.dim()));
  std::iota(dims.begin(), dims.end(), int64_t{0});
  std::stable_sort(dims.begin(), dims.end(),
                   [&](int64_t left, int64_t right) { return tensor.stride(left) > tensor.stride(right); });
  return tensor.permute(dims).view({-1});
}

/// Equal sizes, dtype and bits (-0 and +0 differ, equal NaNs agree).
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const auto left = a.contiguous(), right = b.contiguous();
  return left.nbytes() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

/// A World whose ranks all live here, with the backend registered.
inline std::unique_ptr<World> simulated_world(const std::vector<MeshAxis>& axes, World::Options options = {}) {
  register_backend();
  options.rank_count = 1;
  for (const auto& axis : axes) options.rank_count *= static_cast<int>(axis.size);
  return std::make_unique<World>(std::move(options));
}

/// Whether it throws an error of LibTorch's, or ours of wrong input.
template <class Call>
bool refuses(const Call& call) {
  try {
    call();
    return false;
  } catch (const BadInput&) {
    return true;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace lockstep::testing
