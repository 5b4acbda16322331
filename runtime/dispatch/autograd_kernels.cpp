// Overrides above autograd: ops whose decomposition would lose their sharding, with backward of our own.
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/mesh_ops.h"
#include "runtime/dispatch/native_kernels.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  /// Canonical: each sample's sum first, then over samples.
  static Tensor weight_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal) {
    if (x.dim() == 1) return weight_gradient(gradient.unsqueeze(0), x.unsqueeze(0), reciprocal.unsqueeze(0));
    return at::sum(mesh_ops::rms_norm_weight_gradient(gradient, x, reciprocal), {0}, false);
  }
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, double epsilon) {
    auto [y, reciprocal] = mesh_ops::rms_norm(x, weight, epsilon);
    context->save_for_backward({x, reciprocal, weight});
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    if (layout_of(saved[0]).mesh().world().canonical())
      return {mesh_ops::rms_norm_input_gradient(gradients[0], saved[0], saved[1], saved[2]),
              weight_gradient(gradients[0], saved[0], saved[1]),
              {}};
    auto [dx, dw] = mesh_ops::rms_norm_backward(gradients[0], saved[0], saved[1], saved[2]);
    return {dx, dw, {}};
  }
};

Tensor rms_norm(const Tensor& x, c10::SymIntArrayRef shape, const std::optional<Tensor>& weight,
                std::optional<double> epsilon) {
  if (shape.size() != 1 || !weight || !weight->defined())
    fail<BadInput>("rms_norm on the mesh needs a weight and one normalized dimension");
  return RmsNorm::apply(
      x, *weight, epsilon.value_or(x.scalar_type() == c10::kDouble ? 2.220446049250313e-16 : 1.1920928955078125e-07));
}

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        bool causal, double scale) {
    auto [output, log_sum] = mesh_ops::attention(query, key, value, causal, scale);
    context->save_for_backward({query, key, value, output, log_sum});
    context->saved_data["causal"] = causal;
    context->saved_data["scale"] = scale;
    return output;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    auto [dq, dk, dv] =
        mesh_ops::attention_backward(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4],
                                     context->saved_data["causal"].toBool(), context->saved_data["scale"].toDouble());
    return {dq, dk, dv, {}, {}};
  }
};

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                 double dropout, bool causal, std::optional<double> scale, bool /*grouped*/) {
  if (mask && mask->defined()) fail<BadInput>("attention on the mesh takes no explicit mask; use is_causal");
  if (dropout > 0) fail<BadInput>("attention on the mesh takes no dropout inside; apply it to the output");
  if (query.dim() != 4) fail<BadInput>("attention on the mesh takes [batch, heads, length, size] tensors");
  return Attention::apply(query, key, value, causal,
                          scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1)))));
}

/// Each rank looks at the labels that it has: an error ends the run on all.
void check_labels(const Tensor& labels, int64_t classes, int64_t ignored) {
  if (layout_of(labels).mesh().world().meta()) return;
  const PlainTensors guard;
  for (const auto& shard : sharded(labels).shards()->whole()) {
    if (shard.numel() == 0) continue;
    const auto [low, high] = at::aminmax(shard.masked_fill(shard == ignored, 0));
    const auto least = low.item<int64_t>(), most = high.item<int64_t>();
    if (least < 0 || most >= classes)
      fail<BadInput>("cross-entropy: label {} is none of the {} classes, and not the ignored label {}",
                     least < 0 ? least : most, classes, ignored);
  }
}

Tensor without_partial(const Tensor& tensor) {
  const auto& layout = layout_of(tensor);
  if (!layout.any_partial()) return tensor;
  auto placements = layout.placements();
  for (auto& placement : placements)
    if (placement.is_partial()) placement = Placement::replicate();
  return redistribute_values(tensor, Layout(layout.mesh(), std::move(placements)), "labels");
}

struct TokenLoss : torch::autograd::Function<TokenLoss> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels, int64_t ignore_index) {
    const auto target = without_partial(labels);
    const auto valid = at::ne(target, ignore_index);
    check_labels(target, logits.size(-1), ignore_index);
    const auto shift = at::amax(logits, {-1}, false);
    const auto log_sum = at::add(at::log(mesh_ops::exponential_sum(logits, shift)), shift);
    const auto kept = at::masked_fill(target, at::eq(target, ignore_index), -1);
    const auto picked = mesh_ops::pick_class(logits, kept);
    context->save_for_backward({logits, log_sum, kept, valid});
    return at::mul(at::sub(log_sum, picked), valid.to(logits.scalar_type()));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto gradient = at::mul(gradients[0], saved[3].to(saved[0].scalar_type()));
    return {mesh_ops::cross_entropy_backward(gradient, saved[0], saved[1], saved[2]), {}, {}};
  }
};

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                     c10::SymInt ignore_index, double label_smoothing) {
  if ((weight && weight->defined()) || label_smoothing > 0)
    fail<BadInput>("cross_entropy on the mesh takes no class weights and no label smoothing");
  if (logits.dim() != 2 || target.dim() != 1)
    fail<BadInput>("cross_entropy on the mesh takes logits [tokens, classes] and targets [tokens]");
  const auto ignore = ignore_index.expect_int();
  auto loss = mesh_ops::token_losses(logits, target, ignore);
  if (reduction == 0) return loss;
  if (reduction == 2) return at::sum(loss);
  return at::div(at::sum(loss), at::sum(at::ne(target, ignore)).to(logits.scalar_type()));
}

struct Swiglu : torch::autograd::Function<Swiglu> {
  static Tensor forward(AutogradContext* context, const Tensor& both) {
    context->save_for_backward({both});
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::swiglu(both);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {mesh_ops::swiglu_backward(gradients[0], context->get_saved_variables()[0])};
  }
};

Tensor swiglu(const Tensor& both) { return Swiglu::apply(both); }

struct RotatePairs : torch::autograd::Function<RotatePairs> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cosines, const Tensor& sines,
                        bool back) {
    context->save_for_backward({cosines, sines});
    context->saved_data["back"] = back;
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::rotate_pairs(x, cosines, sines, back);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {
        mesh_ops::rotate_pairs(gradients[0], saved[0], saved[1], !context->saved_data["back"].toBool()), {}, {}, {}};
  }
};

Tensor rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  return RotatePairs::apply(x, cosines, sines, back);
}

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

at::Tensor mesh_ops::token_losses(const at::Tensor& logits, const at::Tensor& target, int64_t ignored) {
  return TokenLoss::apply(logits, target, ignored);
}

void register_autograd_kernels() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__,
                                __LINE__);
  library.impl("rms_norm", TORCH_FN(rms_norm));
  library.impl("scaled_dot_product_attention", TORCH_FN(attention));
  library.impl("cross_entropy_loss", TORCH_FN(cross_entropy));
  static torch::Library mesh(torch::Library::IMPL, "mesh", c10::DispatchKey::Autograd, __FILE__, __LINE__);
  mesh.impl("swiglu", TORCH_FN(swiglu));
  mesh.impl("rotate_pairs", TORCH_FN(rotate_pairs));
}

}  // namespace lockstep
