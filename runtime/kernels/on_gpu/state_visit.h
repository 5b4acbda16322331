#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

namespace lockstep::on_gpu {

/// Elements of a tensor that visit at once: 128 MiB of float32.
inline constexpr int64_t kMostVisiting = int64_t{1} << 25;

/// update(parameter, gradient, mean, square), which takes each element by itself, where the host keeps `mean` and
/// `square`, pinned: they visit the GPU in parts of so many elements, so that it needs no room for all of a large
/// parameter's state. Copies in and out are on streams of their own: those of the next part and of the one before run
/// while an update computes. Two parts' memory is in use at once; more wait.
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
