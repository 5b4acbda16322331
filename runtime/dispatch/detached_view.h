#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <span>

#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

/// The `result`-th result of the view op `op` on `arguments`, of which the first is the base: kept as this call,
/// because no view of the base's shards expresses it. Its values are a copy, made again after a write to another member
/// of the family. A write to it is written back into the base, which takes the whole of both on every rank: it is
/// counted as an implicit gather, and is BadInput under the strict policy and where the base is an unfinished sum.
std::shared_ptr<DetachedView> make_detached_view(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments,
                                                 size_t result);

}  // namespace lockstep
