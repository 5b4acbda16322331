#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::trainer {

/// What a fault makes of a value.
enum class Change {
  kTimes,       ///< times `amount`
  kPlus,        ///< plus `amount`
  kZero,        ///< zeros
  kNegate,      ///< the other sign
  kRoll,        ///< each element (or row, `amount` 0) in the place of the one before
  kReverse,     ///< in the opposite order
  kBit,         ///< one bit of one element, which `amount` draws
  kElement,     ///< one element twice as large and one more
  kLastRow,     ///< the last row is zero
  kRounded,     ///< rounded to bfloat16
  kOld,         ///< what was there the time before, zeros at first
  kOtherRank,   ///< what the rank before has, where sizes are equal
  kOtherGroup,  ///< what a rank of another group of the collective has, where sizes are equal
  kBefore,      ///< what the rank had before the move, where sizes are equal
};
const char* to_text(Change change);

/// What faults remember from step to step: by any key.
using Memory = std::map<std::string, at::Tensor>;

/// Changes a plain tensor in place; lazy copies of it stay as they are. `key`: of what kOld remembers. `other`: for the
/// last three; may be undefined. Integers change by whole numbers. Returns whether any bit has changed.
bool spoil(Change change, double amount, const at::Tensor& value, const at::Tensor& other, const std::string& key,
           Memory& memory);

}  // namespace lockstep::trainer
