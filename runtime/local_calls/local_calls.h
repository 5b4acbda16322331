#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

#include <memory>
#include <span>

#include "runtime/context/run_context.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/shard_set.h"

namespace lockstep {

/// The tensor argument of a slot; `storage` holds it where it is an element of a list.
const at::Tensor& tensor_in(const c10::IValue* arguments, const Slot& slot, at::Tensor& storage);

/// A planned op as local ranks call it, each on its shards of what the plan wants.
struct LocalCalls {
  c10::OperatorHandle op;
  const Plan& plan;
  World& world;
  const RunContext& context;
  std::span<const c10::IValue> arguments;                        ///< borrowed
  c10::SmallVector<std::shared_ptr<ShardSet>, 6> operands = {};  ///< per slot; null: no sharded tensor
  uint64_t stream = 0;                                           ///< of a random op
  std::shared_ptr<const Shards> present = {};                    ///< of packed rows among the operands
  Shards made_present = {};  ///< of Rule::kPacks: the cells of each rank's rows, as calls add them

  /// Puts the arguments of local rank `index` into `local`; `first`, if it is one, in place of operand 0, which then
  /// is not read.
  void fill(size_t index, torch::jit::Stack& local, const at::Tensor* first = nullptr) const;
  /// Calls with those, and leaves the results.
  void call(size_t index, torch::jit::Stack& local);

 private:
  at::Tensor widened(const at::Tensor& operand) const;
  at::Tensor local_tensor(size_t slot, size_t index) const;
};

}  // namespace lockstep
