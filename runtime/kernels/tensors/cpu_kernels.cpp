// Schemas of the ops in namespace `mesh`.
#include "runtime/kernels/tensors/cpu_kernels.h"

namespace lockstep {

std::vector<std::string> define_mesh_ops(torch::Library& definitions, torch::Library& on_cpu) {
  std::vector<std::string> names;
  const auto define = [&](const std::string& schema, auto kernel) {
    const auto name = schema.substr(0, schema.find('('));
    definitions.def(schema.c_str());
    on_cpu.impl(name.c_str(), kernel);
    names.push_back(name);
  };
  define("weight_gradient(Tensor gradient, Tensor input) -> Tensor", TORCH_FN(kernels::weight_gradient));
  define("rms_norm(Tensor x, Tensor weight, float epsilon) -> (Tensor, Tensor)", TORCH_FN(kernels::rms_norm));
  define("rms_norm_backward(Tensor gradient, Tensor x, Tensor reciprocal, Tensor weight) -> (Tensor, Tensor)",
         TORCH_FN(kernels::rms_norm_backward));
  define("exponential_sum(Tensor logits, Tensor shift) -> Tensor", TORCH_FN(kernels::exponential_sum));
  define("pick_class(Tensor logits, Tensor target) -> Tensor", TORCH_FN(kernels::pick_class));
  define("cross_entropy_backward(Tensor gradient, Tensor logits, Tensor log_sum, Tensor target) -> Tensor",
         TORCH_FN(kernels::cross_entropy_backward));
  define(
      "attention(Tensor query, Tensor key, Tensor value, bool causal, float scale, int first_row) -> (Tensor, Tensor)",
      TORCH_FN(kernels::attention));
  define(
      "attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor output, Tensor log_sum, "
      "bool causal, float scale, int first_row) -> (Tensor, Tensor, Tensor)",
      TORCH_FN(kernels::attention_backward));
  define("rms_norm_input_gradient(Tensor gradient, Tensor x, Tensor reciprocal, Tensor weight) -> Tensor",
         TORCH_FN(kernels::rms_norm_input_gradient));
  define("rms_norm_weight_gradient(Tensor gradient, Tensor x, Tensor reciprocal) -> Tensor",
         TORCH_FN(kernels::rms_norm_weight_gradient));
  define("sum_of_squares(Tensor x) -> Tensor", TORCH_FN(kernels::sum_of_squares));
  define("fixed_point_sum(Tensor x) -> Tensor", TORCH_FN(kernels::fixed_point_sum));
  define("absolute_maximum(Tensor x) -> Tensor", TORCH_FN(kernels::absolute_maximum));
  define("scaled_squares(Tensor x, float scale) -> Tensor", TORCH_FN(kernels::scaled_squares));
  define(
      "adamw(Tensor(a!) parameter, Tensor gradient, Tensor(b!) mean, Tensor(c!) square, float learning_rate, "
      "float beta1, float beta2, float epsilon, float weight_decay, float correction1, float correction2, "
      "float gradient_scale) -> ()",
      TORCH_FN(kernels::adamw));
  define("swiglu(Tensor both) -> Tensor", TORCH_FN(kernels::swiglu));
  define("swiglu_backward(Tensor gradient, Tensor both) -> Tensor", TORCH_FN(kernels::swiglu_backward));
  define("rotate_pairs(Tensor x, Tensor cosines, Tensor sines, bool back) -> Tensor", TORCH_FN(kernels::rotate_pairs));
  return names;
}

}  // namespace lockstep
