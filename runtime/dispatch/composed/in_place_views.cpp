#include "runtime/dispatch/composed/in_place_views.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::composed {
namespace {

using at::Tensor;

Tensor& become(Tensor& self, const char* op, const Tensor& view) {
  auto& mine = sharded(self);
  if (mine.is_detached_view() || sharded(view).is_detached_view())
    fail<BadInput>("{} of {}, a view that no view of its base's shards expresses; use the op without _", op,
                   mine.spec().text());
  mine.become(&spec_of(view), sharded(view).shards());
  return self;
}

}  // namespace

Tensor& squeeze_in_place(Tensor& self) { return become(self, "squeeze_", at::squeeze(self)); }
Tensor& squeeze_dim_in_place(Tensor& self, int64_t dim) { return become(self, "squeeze_", at::squeeze(self, dim)); }
Tensor& squeeze_dims_in_place(Tensor& self, c10::IntArrayRef dims) {
  return become(self, "squeeze_", at::squeeze(self, dims));
}
Tensor& t_in_place(Tensor& self) { return become(self, "t_", at::t(self)); }
Tensor& transpose_in_place(Tensor& self, int64_t first, int64_t second) {
  return become(self, "transpose_", at::transpose(self, first, second));
}
Tensor& unsqueeze_in_place(Tensor& self, int64_t dim) { return become(self, "unsqueeze_", at::unsqueeze(self, dim)); }

}  // namespace lockstep::composed
