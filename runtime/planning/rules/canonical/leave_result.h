#pragma once
#include "runtime/planning/plan.h"

namespace lockstep {

/// What a local call leaves: its result in `dtype`, or what the result was written to.
inline void leave_result(const LocalCall& call, torch::jit::Stack& stack, const at::Tensor& self,
                         const at::Tensor& result, c10::ScalarType dtype) {
  stack = {call.plan.written >= 0 ? self.copy_(result) : result.to(dtype)};
}

inline void leave_result(const LocalCall& call, torch::jit::Stack& stack, const at::Tensor& self,
                         const at::Tensor& result) {
  leave_result(call, stack, self, result, result.scalar_type());
}

}  // namespace lockstep
