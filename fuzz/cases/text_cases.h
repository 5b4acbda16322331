#pragma once
#include <span>

#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {

/// How an op is called, in one line of text: its leading arguments, separated by spaces.
///
///     x            a tensor of sizes that all of the call's operands share: 0 to 3 dimensions
///     x~           a tensor that broadcasts to those sizes
///     x+           a tensor of those sizes, none of which is 0 and of which there is one at least
///     x:           a tensor without dimensions
///     x:abC        a tensor with these dimensions; a letter is one size throughout the call, from 1 to 6, a digit
///                  itself
///     x:...ab      the same behind up to two dimensions that the call's operands share
///     {x:a x:a}    a list of tensors
///     dim          a dimension of the first tensor, from the front or from the back
///     dims         a list of one to all of them
///     size         the size list of the first tensor
///     <ab4>        a list of sizes
///     3  0.5  [1,2]  true  none  'mean'  [t,f]  1..4  f32  f64
///
/// What tensors hold is said by their first letter: x numbers as Inputs::tensor() draws them, p positive ones, u
/// different ones, q from 0.1 to 0.9, m truth values, i integers from -9 to 9, j non-negative ones, kN indices below
/// the size of the letter N or, for k!, below the first tensor's size in the call's `dim`, z complex numbers,
/// e 32-bit zeros, v pivots that permute nothing.
struct CallText {
  const char* op;
  unsigned traits;
  const char* arguments;
};

/// Traits of kinds of ops: rounded functions; moves of numbers; decisions about them; what half precision is too short
/// for.
inline constexpr unsigned kSmooth = OpCase::kReal | OpCase::kGradient;
inline constexpr unsigned kDecides = OpCase::kExact | OpCase::kIntegers, kMoves = kDecides | OpCase::kGradient;
inline constexpr unsigned kNumbers = OpCase::kReal | OpCase::kWide;

OpCase case_of(const CallText& text);

/// Of ops on elements that LibTorch decomposes; decomposed_cases() has them and the others.
std::span<const CallText> elementwise_decompositions();

/// Of ops that draw.
std::span<const CallText> random_decompositions();

}  // namespace lockstep::testing
