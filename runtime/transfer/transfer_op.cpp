// transfer() as autograd sees it: a node of its own, whose backward transfers the gradient back.
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/transfer.h"

namespace lockstep {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Both ends.
Tensor transferred(const Tensor& tensor, const Mesh& to) {
  const auto& spec = spec_of(tensor);
  const auto* arrives_as = spec_at(spec, to);
  send(tensor, to, 0);
  return PendingTransfer(arrives_as, spec.layout.mesh(), 0).finish();
}

struct TransferNode : torch::autograd::Function<TransferNode> {
  static Tensor forward(AutogradContext* context, const Tensor& tensor, int64_t to) {
    context->saved_data["from"] = reinterpret_cast<int64_t>(&spec_of(tensor).layout.mesh());
    const auto result = transferred(tensor, *reinterpret_cast<const Mesh*>(to));
    context->saved_data["layout"] = reinterpret_cast<int64_t>(&spec_of(result));
    return result;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& from = *reinterpret_cast<const Mesh*>(context->saved_data["from"].toInt());
    const auto& spec = *reinterpret_cast<const TensorSpec*>(context->saved_data["layout"].toInt());
    return {transfer(redistribute(gradients[0], spec.layout), from), {}};
  }
};

}  // namespace

Tensor transfer(const Tensor& tensor, const Mesh& to) {
  if (!is_sharded(tensor)) fail<BadInput>("transfer() takes a sharded tensor; distribute() makes one");
  return TransferNode::apply(tensor, reinterpret_cast<int64_t>(&to));
}

}  // namespace lockstep
