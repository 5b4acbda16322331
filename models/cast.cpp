#include "models/cast.h"

#include <torch/csrc/autograd/custom_function.h>

#include "runtime/context/scopes.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::models {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Cast : torch::autograd::Function<Cast> {
  static Tensor forward(AutogradContext* context, const Tensor& x, c10::ScalarType dtype) {
    context->saved_data["dtype"] = static_cast<int64_t>(x.scalar_type());
    const at::AutoDispatchBelowAutograd below;
    const PhaseScope phase(Phase::kReduce);  // of an unfinished sum it is no op: it takes the id of none
    return c10::isReducedFloatingType(dtype) ? declared_as(x, dtype) : x.to(dtype);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto dtype = static_cast<c10::ScalarType>(context->saved_data["dtype"].toInt());
    return {gradients[0].defined() ? cast(gradients[0], dtype) : Tensor(), {}};
  }
};

}  // namespace

Tensor cast(const Tensor& x, c10::ScalarType dtype) { return is_sharded(x) ? Cast::apply(x, dtype) : x.to(dtype); }

}  // namespace lockstep::models
