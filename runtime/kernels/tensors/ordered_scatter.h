#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::kernels {

enum class Write { kAdd, kReplace };

/// A copy of self in which, for i ascending along `dim`, source[..., i, ...] is added to (or written over) the element
/// of self at index[..., i, ...]: torch.scatter_add, whose sums are one chain each. Added up in the accumulation dtype
/// (fp32 of 16 bits, fp64 of fp64), rounded once. index and source int64 and any floating dtype or self's; sizes as
/// LibTorch wants them. Throws BadInput at an index that is none.
at::Tensor ordered_scatter(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                           Write write);

}  // namespace lockstep::kernels
