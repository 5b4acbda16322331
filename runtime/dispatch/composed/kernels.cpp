#include "runtime/dispatch/composed/kernels.h"

#include "runtime/dispatch/composed/activations.h"
#include "runtime/dispatch/composed/norms.h"
#include "runtime/dispatch/composed/optimizers.h"

namespace lockstep {

void register_composed_kernels(torch::Library& library) {
  library.impl("native_batch_norm", TORCH_FN(composed::batch_norm));
  library.impl("native_batch_norm_backward", TORCH_FN(composed::batch_norm_backward));
  library.impl("native_group_norm", TORCH_FN(composed::group_norm));
  library.impl("native_group_norm_backward", TORCH_FN(composed::group_norm_backward));
  library.impl("rrelu_with_noise", TORCH_FN(composed::rrelu_with_noise));
  library.impl("rrelu_with_noise_functional", TORCH_FN(composed::rrelu_with_noise_functional));
  library.impl("rrelu_with_noise_", TORCH_FN(composed::rrelu_with_noise_in_place));
  library.impl("_fused_adagrad_", TORCH_FN(composed::fused_adagrad));
  library.impl("_fused_adam_", TORCH_FN(composed::fused_adam));
  library.impl("_fused_adam_.tensor_lr", TORCH_FN(composed::fused_adam_of_tensor));
  library.impl("_fused_adamw_", TORCH_FN(composed::fused_adamw));
  library.impl("_fused_adamw_.tensor_lr", TORCH_FN(composed::fused_adamw_of_tensor));
  library.impl("_fused_sgd_", TORCH_FN(composed::fused_sgd));
  library.impl("_fused_sgd_.tensor_lr", TORCH_FN(composed::fused_sgd_of_tensor));
}

const std::set<std::string>& composed_kernels() {
  static const std::set<std::string> names{"native_batch_norm",       "native_batch_norm_backward",
                                           "native_group_norm",       "native_group_norm_backward",
                                           "_fused_adagrad_",         "_fused_adam_",
                                           "_fused_adam_.tensor_lr",  "_fused_adamw_",
                                           "_fused_adamw_.tensor_lr", "_fused_sgd_",
                                           "_fused_sgd_.tensor_lr",   "rrelu_with_noise",
                                           "rrelu_with_noise_",       "rrelu_with_noise_functional"};
  return names;
}

}  // namespace lockstep
