#pragma once
#include <string_view>

#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {

/// A sharded tensor with all of its values on every rank, gathered for `reason`; a plain one as it is. No autograd.
inline at::Tensor on_every_rank(const at::Tensor& tensor, std::string_view reason) {
  if (!is_sharded(tensor)) return tensor;
  return redistribute_values(tensor, Layout::replicated(layout_of(tensor).mesh()), reason);
}

}  // namespace lockstep::trainer
