#pragma once
#include "runtime/planning/rule.h"

/// Local calls of ops that draw each element by itself: LibTorch's distributions, not its values. Numbers are checked
/// when the call runs, because plans do not depend on them.
namespace lockstep::draws {

void exponential(const LocalCall& call, torch::jit::Stack& stack);
void cauchy(const LocalCall& call, torch::jit::Stack& stack);
void log_normal(const LocalCall& call, torch::jit::Stack& stack);
/// How many trials it takes to succeed: from 1 on.
void geometric(const LocalCall& call, torch::jit::Stack& stack);

void bernoulli(const LocalCall& call, torch::jit::Stack& stack);
/// Each element has a probability of its own.
void bernoulli_of_tensor(const LocalCall& call, torch::jit::Stack& stack);
/// Sizes of `self`, to which `p` is broadcast.
std::vector<ResultShape> bernoulli_shape(const Call& call);

/// Mean and deviation are numbers or tensors.
void normal_of_tensors(const LocalCall& call, torch::jit::Stack& stack);
std::vector<ResultShape> normal_shape(const Call& call);

}  // namespace lockstep::draws
