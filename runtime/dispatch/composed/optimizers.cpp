#include "runtime/dispatch/composed/optimizers.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "core/error.h"

namespace lockstep::composed {
namespace {

using at::Tensor;
using at::TensorList;

double value_of(const Tensor& tensor) { return tensor.item().toDouble(); }
double value_of(double number) { return number; }

/// Nothing is updated where a gradient overflowed: all ranks read the same value.
bool overflowed(const Perhaps& found_inf) { return found_inf && found_inf->defined() && value_of(*found_inf) > 0; }

void check_lengths(const char* op, TensorList parameters, std::initializer_list<TensorList> others) {
  for (const auto& list : others)
    if (list.size() != parameters.size())
      fail<BadInput>("{}: {} tensors beside {} parameters", op, list.size(), parameters.size());
}

/// Unscaled gradients are written back, as LibTorch's kernels do.
Tensor gradient_of(const Tensor& gradient, const Perhaps& grad_scale, bool maximize) {
  if (grad_scale && grad_scale->defined()) Tensor(gradient).copy_(at::div(gradient, value_of(*grad_scale)));
  return maximize ? at::neg(gradient) : gradient;
}

struct Adam {
  double lr, beta1, beta2, weight_decay, eps;
  bool decoupled;
};

void update_adam(const Adam& adam, const Tensor& parameter, const Tensor& gradient, const Tensor& mean,
                 const Tensor& square, const Tensor* largest, double step) {
  auto target = parameter;
  auto g = gradient;
  if (adam.decoupled)
    target.mul_(1 - adam.lr * adam.weight_decay);
  else if (adam.weight_decay > 0 || adam.weight_decay < 0)
    g = at::add(g, target, adam.weight_decay);
  Tensor(mean).copy_(at::add(at::mul(mean, adam.beta1), at::mul(g, 1 - adam.beta1)));
  Tensor(square).copy_(at::add(at::mul(square, adam.beta2), at::mul(at::mul(g, g), 1 - adam.beta2)));
  auto second = square;
  if (largest) second = Tensor(*largest).copy_(at::maximum(*largest, square));
  const double first_correction = 1 - std::pow(adam.beta1, step), root = std::sqrt(1 - std::pow(adam.beta2, step));
  const auto denominator = at::add(at::div(at::sqrt(second), root), adam.eps);
  target.sub_(at::mul(at::div(mean, denominator), adam.lr / first_correction));
}

struct Sgd {
  double weight_decay, momentum, lr, dampening;
  bool nesterov, maximize, is_first_step;
};

void update_sgd(const Sgd& sgd, const Tensor& parameter, Tensor g, const Tensor* velocity) {
  auto target = parameter;
  if (sgd.weight_decay > 0 || sgd.weight_decay < 0) g = at::add(g, target, sgd.weight_decay);
  if (velocity) {
    auto kept = *velocity;
    if (sgd.is_first_step)
      kept.copy_(g);
    else
      kept.copy_(at::add(at::mul(kept, sgd.momentum), at::mul(g, 1 - sgd.dampening)));
    g = sgd.nesterov ? at::add(g, at::mul(kept, sgd.momentum)) : kept;
  }
  target.sub_(at::mul(g, sgd.lr));
}

}  // namespace

template <bool kDecoupled, class Rate>
void fused_adam(TensorList parameters, TensorList gradients, TensorList means, TensorList squares, TensorList largest,
                TensorList steps, Rate lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                bool maximize, const Perhaps& grad_scale, const Perhaps& found_inf) {
  const char* op = kDecoupled ? "_fused_adamw_" : "_fused_adam_";
  check_lengths(op, parameters, {gradients, means, squares, steps});
  if (amsgrad) check_lengths(op, parameters, {largest});
  if (overflowed(found_inf)) return;
  const Adam adam{value_of(lr), beta1, beta2, weight_decay, eps, kDecoupled};
  for (size_t i = 0; i < parameters.size(); ++i)
    update_adam(adam, parameters[i], gradient_of(gradients[i], grad_scale, maximize), means[i], squares[i],
                amsgrad ? &largest[i] : nullptr, value_of(steps[i]));
}

template void fused_adam<false, double>(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, double,
                                        double, double, double, double, bool, bool, const Perhaps&, const Perhaps&);
template void fused_adam<false, const Tensor&>(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList,
                                               const Tensor&, double, double, double, double, bool, bool,
                                               const Perhaps&, const Perhaps&);
template void fused_adam<true, double>(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, double,
                                       double, double, double, double, bool, bool, const Perhaps&, const Perhaps&);
template void fused_adam<true, const Tensor&>(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList,
                                              const Tensor&, double, double, double, double, bool, bool, const Perhaps&,
                                              const Perhaps&);

void fused_sgd(TensorList parameters, TensorList gradients, TensorList momenta, double weight_decay, double momentum,
               double lr, double dampening, bool nesterov, bool maximize, bool is_first_step, const Perhaps& grad_scale,
               const Perhaps& found_inf) {
  check_lengths("_fused_sgd_", parameters, {gradients});
  if (!momenta.empty()) check_lengths("_fused_sgd_", parameters, {momenta});
  if (overflowed(found_inf)) return;
  const Sgd sgd{weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step};
  for (size_t i = 0; i < parameters.size(); ++i)
    update_sgd(sgd, parameters[i], gradient_of(gradients[i], grad_scale, maximize),
               momenta.empty() ? nullptr : &momenta[i]);
}

void fused_sgd_of_tensor(TensorList parameters, TensorList gradients, TensorList momenta, double weight_decay,
                         double momentum, const Tensor& lr, double dampening, bool nesterov, bool maximize,
                         bool is_first_step, const Perhaps& grad_scale, const Perhaps& found_inf) {
  fused_sgd(parameters, gradients, momenta, weight_decay, momentum, value_of(lr), dampening, nesterov, maximize,
            is_first_step, grad_scale, found_inf);
}

void fused_adagrad(TensorList parameters, TensorList gradients, TensorList sums, TensorList steps, double lr,
                   double lr_decay, double weight_decay, double eps, bool maximize, const Perhaps& grad_scale,
                   const Perhaps& found_inf) {
  check_lengths("_fused_adagrad_", parameters, {gradients, sums, steps});
  if (overflowed(found_inf)) return;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto target = parameters[i];
    auto g = gradient_of(gradients[i], grad_scale, maximize);
    if (weight_decay > 0 || weight_decay < 0) g = at::add(g, target, weight_decay);
    const double rate = lr / (1 + (value_of(steps[i]) - 1) * lr_decay);
    Tensor(sums[i]).copy_(at::add(sums[i], at::mul(g, g)));
    target.sub_(at::mul(at::div(g, at::add(at::sqrt(sums[i]), eps)), rate));
  }
}

}  // namespace lockstep::composed
