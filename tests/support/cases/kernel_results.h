#pragma once
#include <string>
#include <tuple>
#include <utility>

#include "fuzz/cases/tensors.h"

/// What tests that hold kernels beside others have in common.
namespace lockstep::testing {

/// Values of all signs, different at every index.
inline at::Tensor numbers(c10::IntArrayRef sizes, c10::ScalarType dtype, int64_t salt) {
  return exact_tensor(sizes, c10::kDouble, 97).add(0.25 * static_cast<double>(salt)).mul(0.03).to(dtype);
}

/// Calls `compare` with each pair of results and what they are: "rms_norm 1".
template <class... T>
void for_each_result(const std::tuple<T...>& ours, const std::tuple<T...>& theirs, const std::string& what,
                     const auto& compare) {
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    (compare(std::get<kIndex>(ours), std::get<kIndex>(theirs), what + " " + std::to_string(kIndex)), ...);
  }
  (std::index_sequence_for<T...>());
}

}  // namespace lockstep::testing
