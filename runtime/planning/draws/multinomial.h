#pragma once
#include "runtime/planning/rule.h"

namespace lockstep::draws {

/// Indices into rows of weights, which need not add up to 1; whole rows lie on a rank. With replacement by inverting
/// the cumulative sum; without, the indices of the least exponential times of arrival (Efraimidis and Spirakis, 2006),
/// in their order.
void multinomial(const LocalCall& call, torch::jit::Stack& stack);
std::vector<ResultShape> multinomial_shape(const Call& call);

}  // namespace lockstep::draws
