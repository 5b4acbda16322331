#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
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

/// Elements of a tensor that visit at once: 128 MiB of float32.
inline constexpr int64_t kMostVisiting = int64_t{1} << 25;

/// update(parameter, gradient, mean, square), which takes each element by itself, where the host keeps `mean` and
/// `square`: in parts of so many elements, so that the GPU needs no room for all of a large parameter's state.
using StateUpdate = std::function<void(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& mean,
                                       const at::Tensor& square)>;
void update_visiting_state(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& mean,
                           const at::Tensor& square, const StateUpdate& update, int64_t most = kMostVisiting);

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
