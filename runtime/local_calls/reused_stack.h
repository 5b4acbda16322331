#pragma once
#include <ATen/core/stack.h>

#include <vector>

namespace lockstep {

/// A stack that keeps its memory from op to op; ops may nest.
class ReusedStack {
 public:
  ReusedStack() {
    if (spare().empty()) return;
    stack_ = std::move(spare().back());
    spare().pop_back();
  }
  ~ReusedStack() {
    stack_.clear();
    spare().push_back(std::move(stack_));
  }
  ReusedStack(const ReusedStack&) = delete;
  ReusedStack& operator=(const ReusedStack&) = delete;

  torch::jit::Stack& operator*() { return stack_; }

 private:
  static std::vector<torch::jit::Stack>& spare() {
    thread_local std::vector<torch::jit::Stack> stacks;
    return stacks;
  }
  torch::jit::Stack stack_;
};

}  // namespace lockstep
