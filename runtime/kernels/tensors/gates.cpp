// SwiGLU and rotary position embedding on plain CPU tensors: one pass over memory each.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <limits>

#include "core/error.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/row_parts.h"
#include "runtime/kernels/tensors/widened.h"

namespace lockstep::kernels {
namespace {

loops::Rows gate_rows(const Tensor& both) {
  const int64_t width = both.size(-1);
  return {width > 0 ? both.numel() / (2 * width) : 0, width};
}

/// Heads side by side in memory: [batch, length, heads, size] seen as [batch, heads, length, size].
Tensor empty_heads(const Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options()).transpose(1, 2);
}

}  // namespace

Tensor swiglu(const Tensor& both) {
  LOCKSTEP_CHECK_EQ(both.size(-2), 2);
  const auto wide = widened(both);
  auto sizes = both.sizes().vec();
  sizes.erase(sizes.end() - 2);
  const auto out = at::empty(sizes, wide.options());
  if (is_on_gpu(wide, "swiglu")) {
    cuda::canonical::swiglu(gate_rows(wide), floats(wide), to_floats(out));
    return out.to(both.scalar_type());
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "swiglu", [&] {
    const auto* from = wide.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    by_parts(gate_rows(wide), [=](loops::Rows part, int64_t row) {
      loops::swiglu(part, from + 2 * row * part.width, to + row * part.width);
    });
  });
  return out.to(both.scalar_type());
}

Tensor swiglu_backward(const Tensor& gradient, const Tensor& both) {
  const auto wide = widened(both), g = gradient.to(wide.scalar_type()).contiguous();
  const auto out = at::empty_like(wide);
  if (is_on_gpu(wide, "swiglu_backward")) {
    cuda::canonical::swiglu_backward(gate_rows(wide), floats(g), floats(wide), to_floats(out));
    return out.to(both.scalar_type());
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "swiglu_backward", [&] {
    const auto *slopes = g.const_data_ptr<scalar_t>(), *from = wide.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    by_parts(gate_rows(wide), [=](loops::Rows part, int64_t row) {
      const int64_t at = row * part.width;
      loops::swiglu_backward(part, slopes + at, from + 2 * at, to + 2 * at);
    });
  });
  return out.to(both.scalar_type());
}

Tensor rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  LOCKSTEP_CHECK_EQ(x.dim(), 4);
  const bool narrow = x.scalar_type() == c10::kBFloat16 || x.scalar_type() == c10::kHalf;
  auto wide = narrow ? x.to(c10::kFloat) : x;
  if (wide.stride(3) != 1) wide = wide.contiguous();
  const auto c = cosines.to(wide.scalar_type()).contiguous(), s = sines.to(wide.scalar_type()).contiguous();
  const auto y = empty_heads(wide);
  if (is_on_gpu(wide, "rotate_pairs")) {
    LOCKSTEP_CHECK(wide.size(3) % 2 == 0 && c.numel() == wide.size(2) * wide.size(3) / 2 && s.sizes() == c.sizes(),
                   "tables of {} and {}", c10::str(c.sizes()), c10::str(s.sizes()));
    if (wide.numel() > std::numeric_limits<uint32_t>::max())
      fail<BadInput>("rotate_pairs of {} on a GPU: 2^32 elements at most", c10::str(wide.sizes()));
    if (wide.numel() > 0)
      cuda::rotate_pairs(cuda::Element::kFloat32, {wide.size(0), wide.size(1), wide.size(2), wide.size(3)},
                         {wide.stride(0), wide.stride(1), wide.stride(2)}, floats(wide), floats(c), floats(s), back,
                         to_floats(y));
    return y.to(x.scalar_type());
  }
  const loops::HeadShape shape{wide.size(0),   wide.size(1),   wide.size(2),  wide.size(3),
                               wide.stride(0), wide.stride(1), wide.stride(2)};
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "rotate_pairs", [&] {
    const auto *from = wide.const_data_ptr<scalar_t>(), *cosine = c.const_data_ptr<scalar_t>();
    const auto* sine = s.const_data_ptr<scalar_t>();
    auto* to = y.mutable_data_ptr<scalar_t>();
    const int64_t sample = shape.length * shape.heads * shape.size;
    by_parts({shape.batch, sample}, [=](loops::Rows part, int64_t first) {
      auto samples = shape;
      samples.batch = part.count;
      loops::rotate_pairs<scalar_t>(samples, from + first * shape.batch_stride, cosine, sine, back ? -1 : 1,
                                    to + first * sample);
    });
  });
  return y.to(x.scalar_type());
}

}  // namespace lockstep::kernels
