// RMSNorm and the pieces of cross-entropy: on plain CPU tensors, and with a CPU's bits on a GPU's.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/row_parts.h"
#include "runtime/kernels/tensors/widened.h"

namespace lockstep::kernels {
namespace {

/// `tensor` in the dtype of `like`, contiguous.
Tensor beside(const Tensor& tensor, const Tensor& like) { return tensor.to(like.scalar_type()).contiguous(); }

}  // namespace

std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const auto wide = widened(x), wide_weight = beside(weight, wide);
  const auto y = at::empty_like(wide);
  auto sizes = x.sizes().vec();
  sizes.pop_back();
  const auto reciprocal = at::empty(sizes, wide.options());
  if (is_on_gpu(wide, "rms_norm")) {
    cuda::canonical::rms_norm(rows_of(wide), floats(wide), floats(wide_weight), to_floats(y), to_floats(reciprocal),
                              static_cast<float>(epsilon));
    return {y.to(x.scalar_type()), reciprocal};
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "rms_norm", [&] {
    const auto *from = wide.const_data_ptr<scalar_t>(), *weights = wide_weight.const_data_ptr<scalar_t>();
    auto *to = y.mutable_data_ptr<scalar_t>(), *reciprocals = reciprocal.mutable_data_ptr<scalar_t>();
    by_parts(rows_of(wide), [=](loops::Rows part, int64_t row) {
      const int64_t at = row * part.width;
      loops::rms_norm(part, from + at, weights, to + at, reciprocals + row, static_cast<scalar_t>(epsilon));
    });
  });
  return {y.to(x.scalar_type()), reciprocal};
}

namespace {

/// Adds to `dw`, if it is defined: then row after row.
Tensor norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal, const Tensor& weight,
                     const Tensor& dw) {
  const auto wide = widened(x), g = beside(gradient, wide), r = beside(reciprocal, wide), w = beside(weight, wide);
  const auto dx = at::empty_like(wide);
  if (is_on_gpu(wide, "rms_norm_backward")) {
    LOCKSTEP_CHECK(!dw.defined(), "on a GPU the weight's gradient is an op of its own");
    cuda::canonical::rms_norm_input_gradient(rows_of(wide), floats(g), floats(wide), floats(r), floats(w),
                                             to_floats(dx));
    return dx.to(x.scalar_type());
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "rms_norm_backward", [&] {
    const auto *slopes = g.const_data_ptr<scalar_t>(), *from = wide.const_data_ptr<scalar_t>();
    const auto *reciprocals = r.const_data_ptr<scalar_t>(), *weights = w.const_data_ptr<scalar_t>();
    auto *to = dx.mutable_data_ptr<scalar_t>(), *sums = dw.defined() ? dw.mutable_data_ptr<scalar_t>() : nullptr;
    const auto run = [=](loops::Rows part, int64_t row) {
      const int64_t at = row * part.width;
      loops::rms_norm_backward(part, slopes + at, from + at, reciprocals + row, weights, to + at, sums);
    };
    sums == nullptr ? by_parts(rows_of(wide), run) : run(rows_of(wide), 0);
  });
  return dx.to(x.scalar_type());
}

}  // namespace

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                             const Tensor& weight) {
  const bool is_wide = x.scalar_type() == c10::kDouble;
  const auto dw = at::zeros(weight.sizes(), weight.options().dtype(is_wide ? c10::kDouble : c10::kFloat));
  return {norm_backward(gradient, x, reciprocal, weight, dw), dw.to(weight.scalar_type())};
}

Tensor rms_norm_input_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                               const Tensor& weight) {
  return norm_backward(gradient, x, reciprocal, weight, {});
}

Tensor exponential_sum(const Tensor& logits, const Tensor& shift) {
  const auto wide = widened(logits), s = beside(shift, wide);
  const auto sum = at::zeros(s.sizes(), wide.options());
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "exponential_sum", [&] {
    loops::exponential_sum(rows_of(wide), wide.const_data_ptr<scalar_t>(), s.const_data_ptr<scalar_t>(),
                           sum.mutable_data_ptr<scalar_t>());
  });
  return sum.to(shift.scalar_type());
}

Tensor pick_class(const Tensor& logits, const Tensor& target) {
  if (logits.size(-1) == 0) return at::zeros(target.sizes(), logits.options());
  const auto picked = at::gather(logits, -1, at::clamp_min(target, 0).unsqueeze(-1)).squeeze(-1);
  return at::masked_fill(picked, target < 0, 0);
}

namespace {

/// The kernel writes where a label says.
void require_classes(const Tensor& labels, int64_t classes) {
  const auto* first = labels.const_data_ptr<int64_t>();
  const auto* wrong = std::find_if(first, first + labels.numel(), [=](int64_t label) { return label >= classes; });
  if (wrong != first + labels.numel())
    fail<BadInput>("cross_entropy_backward: label {} is none of the {} classes", *wrong, classes);
}

}  // namespace

Tensor cross_entropy_backward(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                              const Tensor& target) {
  const auto wide = widened(logits), g = beside(gradient, wide), shift = beside(log_sum, wide);
  const auto classes = target.contiguous();
  const auto result = at::empty_like(wide);
  if (is_on_gpu(wide, "cross_entropy_backward")) {  // whose kernel writes nowhere else
    cuda::canonical::cross_entropy_backward(rows_of(wide), floats(g), floats(wide), floats(shift),
                                            classes.const_data_ptr<int64_t>(), to_floats(result));
    return result.to(logits.scalar_type());
  }
  require_classes(classes, logits.size(-1));
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "cross_entropy_backward", [&] {
    const auto *slopes = g.const_data_ptr<scalar_t>(), *from = wide.const_data_ptr<scalar_t>();
    const auto* shifts = shift.const_data_ptr<scalar_t>();
    const auto* labels = classes.const_data_ptr<int64_t>();
    auto* to = result.mutable_data_ptr<scalar_t>();
    by_written_parts(rows_of(wide), to, [=](loops::Rows part, int64_t row) {
      const int64_t at = row * part.width;
      loops::cross_entropy_backward(part, slopes + row, from + at, shifts + row, labels + row, to + at);
    });
  });
  return result.to(logits.scalar_type());
}

}  // namespace lockstep::kernels
