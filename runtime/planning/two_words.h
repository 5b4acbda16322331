#pragma once
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "runtime/planning/rule.h"

/// Results that are one integer in two words: int64 [2], high * 2^32 + low. An integer has many pairs, because sums
/// over ranks carry nothing.
namespace lockstep {

inline bool has_two_words(const Rule* rule) { return rule && (rule->traits & Rule::kTwoWords) != 0; }

/// The pair of the same integer that has 0 <= low < 2^32.
inline at::Tensor carried(const at::Tensor& words) {
  const auto low = words[1], carry = at::bitwise_right_shift(low, int64_t{32});
  return at::stack({words[0] + carry, low - at::bitwise_left_shift(carry, int64_t{32})});
}

}  // namespace lockstep
