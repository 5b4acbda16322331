#pragma once
#include <ATen/core/Tensor.h>

/// Ops that make a tensor a view of itself: other sizes, the same elements. BadInput for a view that is kept as the
/// call that made it (runtime/dispatch/detached_view.h): it would have to be another call.
namespace lockstep::composed {

at::Tensor& squeeze_in_place(at::Tensor& self);
at::Tensor& squeeze_dim_in_place(at::Tensor& self, int64_t dim);
at::Tensor& squeeze_dims_in_place(at::Tensor& self, c10::IntArrayRef dims);
at::Tensor& t_in_place(at::Tensor& self);
at::Tensor& transpose_in_place(at::Tensor& self, int64_t first, int64_t second);
at::Tensor& unsqueeze_in_place(at::Tensor& self, int64_t dim);

}  // namespace lockstep::composed
