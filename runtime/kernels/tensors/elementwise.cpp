#include "runtime/kernels/tensors/elementwise.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/row_parts.h"
#include "runtime/kernels/tensors/widened.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

}  // namespace

Tensor apply(loops::Function function, const Tensor& x) {
  const auto wide = widened(x), out = at::empty_like(wide);
  if (is_on_gpu(wide, "an elementwise function")) {
    cuda::canonical::apply(function, wide.numel(), floats(wide), to_floats(out));
    return out.to(x.scalar_type());
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "elementwise", [&] {
    const auto* from = wide.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, wide.numel(), kGrain,
                 [=](int64_t begin, int64_t end) { loops::apply(function, end - begin, from + begin, to + begin); });
  });
  return out.to(x.scalar_type());
}

Tensor apply(loops::Gradient gradient, const Tensor& g, const Tensor& x) {
  const auto wide = widened(x), slope = g.to(wide.scalar_type()).contiguous(), out = at::empty_like(wide);
  if (is_on_gpu(wide, "an elementwise function's gradient")) {
    cuda::canonical::apply(gradient, wide.numel(), floats(slope), floats(wide), to_floats(out));
    return out.to(x.scalar_type());
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "elementwise_gradient", [&] {
    const auto *from = wide.const_data_ptr<scalar_t>(), *slopes = slope.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, wide.numel(), kGrain, [=](int64_t begin, int64_t end) {
      loops::apply(gradient, end - begin, slopes + begin, from + begin, to + begin);
    });
  });
  return out.to(x.scalar_type());
}

}  // namespace lockstep::kernels
