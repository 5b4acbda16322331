#pragma once
#include "runtime/planning/rule.h"

/// Local calls of ops that draw integers: each number of a range is equally likely, up to 2^-64.
namespace lockstep::draws {

/// From 0 to the greatest integer that the dtype holds; of floating-point ones, up to which it holds all.
void random(const LocalCall& call, torch::jit::Stack& stack);
/// From 0, or `from`, to just below `to`. Floating-point dtypes round, and stay within.
void random_to(const LocalCall& call, torch::jit::Stack& stack);
void random_between(const LocalCall& call, torch::jit::Stack& stack);

/// 0 to n - 1 in random order, whole on every rank.
void permutation(const LocalCall& call, torch::jit::Stack& stack);
std::vector<ResultShape> permutation_shape(const Call& call);

}  // namespace lockstep::draws
