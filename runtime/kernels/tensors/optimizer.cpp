// AdamW and the squares of the gradient norm: on plain CPU tensors, AdamW with their bits on a GPU's.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/row_parts.h"

namespace lockstep::kernels {
namespace {

/// A tensor to write to as contiguous memory: its own, or a copy that is written back at the end.
class Written {
 public:
  explicit Written(const Tensor& tensor) : tensor_(tensor), memory_(tensor.contiguous()) {}
  ~Written() {
    if (!memory_.is_same(tensor_)) tensor_.copy_(memory_);
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  /// REQUIRES: T is the tensor's dtype.
  template <class T>
  T* data() const {
    return memory_.mutable_data_ptr<T>();
  }

 private:
  Tensor tensor_, memory_;
};

}  // namespace

void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
           double learning_rate, double beta1, double beta2, double epsilon, double weight_decay, double correction1,
           double correction2, double gradient_scale) {
  const Written p(parameter), m(mean), v(square);
  const auto g = gradient.to(parameter.scalar_type()).contiguous();
  LOCKSTEP_CHECK_EQ(g.numel(), parameter.numel());
  if (is_on_gpu(parameter, "adamw")) {
    cuda::adamw(parameter.numel(), p.data<float>(), floats(g), m.data<float>(), v.data<float>(),
                loops::adamw_step<float>(learning_rate, beta1, beta2, epsilon, weight_decay, correction1, correction2,
                                         gradient_scale));
    return;
  }
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "adamw", [&] {
    const auto step = loops::adamw_step<scalar_t>(learning_rate, beta1, beta2, epsilon, weight_decay, correction1,
                                                  correction2, gradient_scale);
    auto *values = p.data<scalar_t>(), *means = m.data<scalar_t>(), *squares = v.data<scalar_t>();
    const auto* gradients = g.const_data_ptr<scalar_t>();
    parallel_for(0, parameter.numel(), kGrain, [=](int64_t begin, int64_t end) {
      loops::adamw(end - begin, values + begin, gradients + begin, means + begin, squares + begin, step);
    });
  });
}

Tensor sum_of_squares(const Tensor& x) {
  const auto values = (x.scalar_type() == c10::kDouble ? x : x.to(c10::kFloat)).contiguous();
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "sum_of_squares",
                             [&] { sum = loops::sum_of_squares(values.numel(), values.const_data_ptr<scalar_t>()); });
  return at::scalar_tensor(sum, c10::kDouble);
}

}  // namespace lockstep::kernels
