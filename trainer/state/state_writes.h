#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/digest/digest.h"
#include "runtime/context/observer.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Watches whether anything but ops of the optimizer, and what replicas give each other of its updates, writes to a
/// run's parameters and optimizer state while it makes a step: by digests of every shard of this process, when the step
/// begins, before and after each of those ops, and at its end. What the ops themselves give is for others to compare.
class StateWrites final : public Observer {
 public:
  /// A step begins from `state`, whose tensors are kept until take_change().
  void begin(const TrainingState& state);

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  /// Parts that replicas take to update them are watched until they are given back.
  void after_move(const MoveEvent& event) override;

  /// It has ended: "optimizer.mean.head.weight on rank 2", the first shard that was seen to be another than what the
  /// step began with, or than what the last op of the optimizer on it gave; empty: none. REQUIRES: begin().
  std::string take_change(const TrainingState& state);

 private:
  struct Mark {
    std::string name;
    at::Tensor tensor;  ///< so that its address stays its own
    std::vector<Digest> shards;
  };
  /// Null for what is no part of the state.
  Mark* find(const c10::IValue& argument);
  void compare(const Mark& mark);
  void compare_parts(const at::Tensor& tensor);
  void compare_part(const at::Tensor& shard);

  struct Part {
    std::string name;  ///< of who takes it
    at::Tensor shard;  ///< so that its address stays its own
    Digest digest;
  };
  std::map<const c10::TensorImpl*, Mark> marks_;
  std::map<const void*, Part> parts_;
  std::string change_;  ///< the first
};

}  // namespace lockstep::trainer
