// The typed entry points of the ops in namespace `mesh`: look up, call.
#include "runtime/dispatch/mesh_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "runtime/dispatch/backend.h"

namespace lockstep::mesh_ops {
namespace {

template <class Signature>
auto find(const char* name) {
  register_backend();
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

using at::Tensor;

}  // namespace

Tensor weight_gradient(const Tensor& gradient, const Tensor& input) {
  static const auto op = find<Tensor(const Tensor&, const Tensor&)>("mesh::weight_gradient");
  return op.call(gradient, input);
}

std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  static const auto op = find<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, double)>("mesh::rms_norm");
  return op.call(x, weight, epsilon);
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                             const Tensor& weight) {
  static const auto op = find<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>(
      "mesh::rms_norm_backward");
  return op.call(gradient, x, reciprocal, weight);
}

Tensor exponential_sum(const Tensor& logits, const Tensor& shift) {
  static const auto op = find<Tensor(const Tensor&, const Tensor&)>("mesh::exponential_sum");
  return op.call(logits, shift);
}

Tensor pick_class(const Tensor& logits, const Tensor& target) {
  static const auto op = find<Tensor(const Tensor&, const Tensor&)>("mesh::pick_class");
  return op.call(logits, target);
}

Tensor cross_entropy_backward(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                              const Tensor& target) {
  static const auto op =
      find<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>("mesh::cross_entropy_backward");
  return op.call(gradient, logits, log_sum, target);
}

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                     double scale, int64_t first_row) {
  static const auto op =
      find<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, bool, double, int64_t)>(
          "mesh::attention");
  return op.call(query, key, value, causal, scale, first_row);
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                      const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                      bool causal, double scale, int64_t first_row) {
  static const auto op =
      find<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                              const Tensor&, bool, double, int64_t)>("mesh::attention_backward");
  return op.call(gradient, query, key, value, output, log_sum, causal, scale, first_row);
}

Tensor rms_norm_input_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                               const Tensor& weight) {
  static const auto op =
      find<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>("mesh::rms_norm_input_gradient");
  return op.call(gradient, x, reciprocal, weight);
}

Tensor rms_norm_weight_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal) {
  static const auto op = find<Tensor(const Tensor&, const Tensor&, const Tensor&)>("mesh::rms_norm_weight_gradient");
  return op.call(gradient, x, reciprocal);
}

Tensor fixed_point_sum(const Tensor& x) {
  static const auto op = find<Tensor(const Tensor&)>("mesh::fixed_point_sum");
  return op.call(x);
}

Tensor absolute_maximum(const Tensor& x) {
  static const auto op = find<Tensor(const Tensor&)>("mesh::absolute_maximum");
  return op.call(x);
}

Tensor scaled_squares(const Tensor& x, double scale) {
  static const auto op = find<Tensor(const Tensor&, double)>("mesh::scaled_squares");
  return op.call(x, scale);
}

Tensor sum_of_squares(const Tensor& x) {
  static const auto op = find<Tensor(const Tensor&)>("mesh::sum_of_squares");
  return op.call(x);
}

void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
           const AdamwOptions& o) {
  static const auto op = find<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, double, double,
                                   double, double, double, double, double)>("mesh::adamw");
  op.call(parameter, gradient, mean, square, o.learning_rate, o.beta1, o.beta2, o.epsilon, o.weight_decay,
          o.correction1, o.correction2, o.gradient_scale);
}

Tensor swiglu(const Tensor& both) {
  static const auto op = find<Tensor(const Tensor&)>("mesh::swiglu");
  return op.call(both);
}

Tensor swiglu_backward(const Tensor& gradient, const Tensor& both) {
  static const auto op = find<Tensor(const Tensor&, const Tensor&)>("mesh::swiglu_backward");
  return op.call(gradient, both);
}

Tensor rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  static const auto op = find<Tensor(const Tensor&, const Tensor&, const Tensor&, bool)>("mesh::rotate_pairs");
  return op.call(x, cosines, sines, back);
}

}  // namespace lockstep::mesh_ops
