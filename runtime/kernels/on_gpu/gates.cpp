// SwiGLU and rotary position embedding: element by element.
#include <ATen/Functions.h>

#include <limits>

#include "core/error.h"
#include "runtime/kernels/on_gpu/elements.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"

namespace lockstep::on_gpu {
namespace {

cuda::Rows gate_rows(const Tensor& both) { return {both.numel() / (2 * both.size(-1)), both.size(-1)}; }

}  // namespace

Tensor swiglu(const Tensor& both) {
  const auto element = element_of(both);
  if (!element || both.numel() == 0) return composed::swiglu(both);
  LOCKSTEP_CHECK_EQ(both.size(-2), 2);
  auto sizes = both.sizes().vec();
  sizes.erase(sizes.end() - 2);
  const auto in = both.contiguous();
  auto out = at::empty(sizes, both.options());
  cuda::swiglu(*element, gate_rows(in), in.const_data_ptr(), out.mutable_data_ptr());
  return out;
}

Tensor swiglu_backward(const Tensor& gradient, const Tensor& both) {
  const auto element = element_of(both, gradient);
  if (!element || both.numel() == 0) return composed::swiglu_backward(gradient, both);
  const auto g = gradient.contiguous(), in = both.contiguous();
  auto out = at::empty_like(in);
  cuda::swiglu_backward(*element, gate_rows(in), g.const_data_ptr(), in.const_data_ptr(), out.mutable_data_ptr());
  return out;
}

Tensor rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  const auto element = element_of(x);
  const bool is_counted = x.numel() > 0 && x.numel() < std::numeric_limits<uint32_t>::max();
  if (!element || !is_counted || element_of(cosines, sines) != cuda::Element::kFloat32)
    return composed::rotate_pairs(x, cosines, sines, back);
  LOCKSTEP_CHECK(x.size(3) % 2 == 0 && cosines.sizes() == at::IntArrayRef({x.size(2), x.size(3) / 2}) &&
                     sines.sizes() == cosines.sizes(),
                 "rotate_pairs of {}: tables of {} and {}", c10::str(x.sizes()), c10::str(cosines.sizes()),
                 c10::str(sines.sizes()));
  const auto in = x.stride(3) == 1 ? x : x.contiguous();
  const auto c = cosines.contiguous(), s = sines.contiguous();
  const cuda::HeadSizes sizes{x.size(0), x.size(1), x.size(2), x.size(3)};
  const auto out = at::empty({sizes.batch, sizes.length, sizes.heads, sizes.size}, x.options());
  cuda::rotate_pairs(*element, sizes, {in.stride(0), in.stride(1), in.stride(2)}, in.const_data_ptr(),
                     c.const_data_ptr<float>(), s.const_data_ptr<float>(), back, out.mutable_data_ptr());
  return out.transpose(1, 2);
}

}  // namespace lockstep::on_gpu
