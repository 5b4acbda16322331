#include "runtime/dispatch/composed/kernels.h"

#include <ATen/Functions.h>

#include "runtime/dispatch/composed/activations.h"
#include "runtime/dispatch/composed/channel_shuffle.h"
#include "runtime/dispatch/composed/functions.h"
#include "runtime/dispatch/composed/in_place_views.h"
#include "runtime/dispatch/composed/losses.h"
#include "runtime/dispatch/composed/norms.h"
#include "runtime/dispatch/composed/optimizers.h"

namespace lockstep {
namespace {

/// LibTorch's has no memory, and a dispatch key that no kernel of a mesh knows.
at::Tensor zeros_of_sizes(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                          std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                          std::optional<bool> pin_memory) {
  return at::zeros(sizes, dtype, layout, device, pin_memory);
}

template <auto* kFunction>
torch::CppFunction kernel() {
  return torch::CppFunction(TORCH_FN(kFunction));
}

struct Kernel {
  const char* op;
  torch::CppFunction (*function)();
};

constexpr Kernel kKernels[] = {
    {"_batch_norm_no_update", kernel<composed::batch_norm_no_update>},
    {"_batch_norm_with_update", kernel<composed::batch_norm_with_update>},
    {"_efficientzerotensor", kernel<zeros_of_sizes>},
    {"_fused_adagrad_", kernel<composed::fused_adagrad>},
    {"_fused_adam_", kernel<composed::fused_adam<false, double>>},
    {"_fused_adam_.tensor_lr", kernel<composed::fused_adam<false, const at::Tensor&>>},
    {"_fused_adamw_", kernel<composed::fused_adam<true, double>>},
    {"_fused_adamw_.tensor_lr", kernel<composed::fused_adam<true, const at::Tensor&>>},
    {"_fused_sgd_", kernel<composed::fused_sgd>},
    {"_fused_sgd_.tensor_lr", kernel<composed::fused_sgd_of_tensor>},
    {"_native_batch_norm_legit", kernel<composed::batch_norm_legit>},
    {"_native_batch_norm_legit.no_stats", kernel<composed::batch_norm_of_batch>},
    {"batch_norm_backward", kernel<composed::batch_norm_with_update_backward>},
    {"binary_cross_entropy_with_logits", kernel<composed::binary_cross_entropy_with_logits>},
    {"mvlgamma", kernel<composed::mvlgamma>},
    {"native_batch_norm", kernel<composed::batch_norm>},
    {"native_batch_norm_backward", kernel<composed::batch_norm_backward>},
    {"native_channel_shuffle", kernel<composed::native_channel_shuffle>},
    {"native_group_norm", kernel<composed::group_norm>},
    {"native_group_norm_backward", kernel<composed::group_norm_backward>},
    {"native_layer_norm_backward", kernel<composed::layer_norm_backward>},
    {"rrelu_with_noise", kernel<composed::rrelu_with_noise>},
    {"rrelu_with_noise_", kernel<composed::rrelu_with_noise_in_place>},
    {"rrelu_with_noise_functional", kernel<composed::rrelu_with_noise_functional>},
    {"soft_margin_loss", kernel<composed::soft_margin_loss>},
    {"soft_margin_loss_backward", kernel<composed::soft_margin_loss_backward>},
    {"squeeze_", kernel<composed::squeeze_in_place>},
    {"squeeze_.dim", kernel<composed::squeeze_dim_in_place>},
    {"squeeze_.dims", kernel<composed::squeeze_dims_in_place>},
    {"t_", kernel<composed::t_in_place>},
    {"transpose_", kernel<composed::transpose_in_place>},
    {"unsqueeze_", kernel<composed::unsqueeze_in_place>},
};

}  // namespace

void register_composed_kernels(torch::Library& library) {
  for (const auto& [op, function] : kKernels) library.impl(op, function());
}

const std::set<std::string>& composed_kernels() {
  static const auto names = [] {
    std::set<std::string> all;
    for (const auto& kernel : kKernels) all.insert(kernel.op);
    return all;
  }();
  return names;
}

}  // namespace lockstep
