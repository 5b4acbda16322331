#pragma once
#include <cmath>

namespace lockstep::kernels::loops {

/// The numbers of one AdamW step, the same for all elements.
template <class T>
struct AdamwStep {
  T gradient_scale, decay, beta1, rest1, beta2, rest2, step_size, root_correction, epsilon;
};

/// From what mesh_ops::AdamwOptions says.
template <class T>
AdamwStep<T> adamw_step(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                        double correction1, double correction2, double gradient_scale) {
  return {static_cast<T>(gradient_scale),
          static_cast<T>(1 - learning_rate * weight_decay),
          static_cast<T>(beta1),
          static_cast<T>(1 - beta1),
          static_cast<T>(beta2),
          static_cast<T>(1 - beta2),
          static_cast<T>(learning_rate / correction1),
          static_cast<T>(std::sqrt(correction2)),
          static_cast<T>(epsilon)};
}

}  // namespace lockstep::kernels::loops
