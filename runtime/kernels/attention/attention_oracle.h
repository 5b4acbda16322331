#pragma once
#include "runtime/kernels/attention/attention_loops.h"

namespace lockstep::kernels {

/// What attention_forward and attention_backward compute, one number after the other. Slow; for tests.
template <class Input, class T>
void attention_forward_oracle(const AttentionForward<Input, T>& work);
template <class Input, class T>
void attention_backward_oracle(const AttentionBackward<Input, T>& work);

}  // namespace lockstep::kernels
