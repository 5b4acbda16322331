// redistribute() as autograd sees it: a node of its own, whose backward redistributes the gradient.
#include "runtime/redistribution/redistribute.h"

#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/local_calls/decomposition.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Where nothing moves: as contiguous as a tensor that was moved.
Tensor contiguous(const Tensor& tensor) {
  const PlainTensors guard;
  const auto& spec = spec_of(tensor);
  Shards shards;
  for (const auto& shard : sharded(tensor).shards()->local_tensors())
    shards.push_back(shard.clone(at::MemoryFormat::Contiguous));
  return make_sharded(with_layout(spec, spec.layout), std::move(shards));
}

struct Redistribute : torch::autograd::Function<Redistribute> {
  static Tensor forward(AutogradContext* context, const Tensor& tensor, int64_t target) {
    const auto& layout = *reinterpret_cast<const Layout*>(target);
    context->saved_data["source"] = reinterpret_cast<int64_t>(&spec_of(tensor));
    auto& decomposition = layout.mesh().world().part<Decomposition>();
    if (decomposition.is_on())
      if (auto parts = decomposition.redistributed(tensor, layout); parts.defined()) return parts;
    const auto result = redistribute_values(tensor, layout, "redistribute");
    if (result.is_same(tensor) && !tensor.is_contiguous()) return contiguous(tensor);
    return make_sharded(&spec_of(result), with_own_bytes(sharded(result).shards(), *sharded(tensor).shards()));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& source = *reinterpret_cast<const TensorSpec*>(context->saved_data["source"].toInt());
    Placements placements = source.layout.placements();
    for (auto& placement : placements) {
      if (!placement.is_partial()) continue;
      if (placement.reduction != Reduction::kSum && placement.reduction != Reduction::kAvg)
        fail<BadInput>("the gradient of a P({}) is not defined; only sums and averages can be redistributed backward",
                       to_text(placement.reduction));
      placement = Placement::replicate();
    }
    return {redistribute(gradients[0], Layout(source.layout.mesh(), std::move(placements))), {}};
  }
};

}  // namespace

at::Tensor redistribute(const at::Tensor& tensor, const Layout& layout) {
  if (!is_sharded(tensor)) fail<BadInput>("redistribute() takes a sharded tensor; distribute() makes one");
  return Redistribute::apply(tensor, reinterpret_cast<int64_t>(&layout));
}

}  // namespace lockstep
