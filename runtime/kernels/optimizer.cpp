// AdamW and the squares of the gradient norm, on plain CPU tensors.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <cmath>

#include "core/error.h"
#include "runtime/kernels/cpu_kernels.h"

namespace lockstep::kernels {
namespace {

/// One fixed sequence of multiplications, additions, one square root and one division per element.
template <class T>
struct AdamwStep {
  T decay, beta1, rest1, beta2, rest2, step_size, root_correction, epsilon;

  void operator()(T& p, T g, T& m, T& v) const {
    p = p * decay;
    m = m * beta1 + g * rest1;
    v = v * beta2 + g * g * rest2;
    p = p - step_size * m / (std::sqrt(v) / root_correction + epsilon);
  }
};

template <class T>
void adamw_elements(int64_t count, T* p, const T* g, T* m, T* v, const AdamwStep<T>& step) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) step(p[i], g[i], m[i], v[i]);
}

}  // namespace

void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
           double learning_rate, double beta1, double beta2, double epsilon, double weight_decay, double correction1,
           double correction2) {
  for (const auto* tensor : {&parameter, &mean, &square})
    LOCKSTEP_CHECK(tensor->is_contiguous() && tensor->scalar_type() == parameter.scalar_type(),
                   "AdamW works on contiguous tensors of one dtype");
  const auto g = gradient.to(parameter.scalar_type()).contiguous();
  LOCKSTEP_CHECK_EQ(g.numel(), parameter.numel());
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "adamw", [&] {
    const AdamwStep<scalar_t> step{static_cast<scalar_t>(1 - learning_rate * weight_decay),
                                   static_cast<scalar_t>(beta1),
                                   static_cast<scalar_t>(1 - beta1),
                                   static_cast<scalar_t>(beta2),
                                   static_cast<scalar_t>(1 - beta2),
                                   static_cast<scalar_t>(learning_rate / correction1),
                                   static_cast<scalar_t>(std::sqrt(correction2)),
                                   static_cast<scalar_t>(epsilon)};
    adamw_elements<scalar_t>(parameter.numel(), parameter.mutable_data_ptr<scalar_t>(), g.const_data_ptr<scalar_t>(),
                             mean.mutable_data_ptr<scalar_t>(), square.mutable_data_ptr<scalar_t>(), step);
  });
}

Tensor sum_of_squares(const Tensor& x) {
  const auto wide = x.to(c10::kDouble).reshape({-1});
  return at::dot(wide, wide);
}

}  // namespace lockstep::kernels
