#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::on_gpu {

/// Tensors whose memory is the host's, pinned, on the GPU for one update. Copies in and out are on streams of their
/// own: those of the next tensors and of the ones before run while an update computes. Two visits' memory is in use at
/// once; more wait.
class StateVisit {
 public:
  /// `state` is to be written on the current stream.
  explicit StateVisit(std::vector<at::Tensor> state);
  StateVisit(const StateVisit&) = delete;
  StateVisit& operator=(const StateVisit&) = delete;

  /// Of the state's tensors, in their order.
  const at::Tensor& operator[](size_t index) const { return there_[index]; }

  /// What was written goes back, in its time. Called once, after the last op.
  void leave();

 private:
  std::vector<at::Tensor> state_, there_;
};

/// Until all that left is in the host's memory: before anyone reads it there.
void wait_for_state();

/// The same where an error ends a scope.
class StateScope {
 public:
  StateScope() = default;
  ~StateScope();
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;
};

}  // namespace lockstep::on_gpu
