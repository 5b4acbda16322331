#include "runtime/planning/draws/drawn.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/random.h"
#include "runtime/context/run_context.h"
#include "runtime/kernels/tensors/elementwise.h"

namespace lockstep::draws {

at::Tensor drawn(const LocalCall& call, const TensorSpec& spec, c10::ScalarType dtype,
                 const rng::Distribution& distribution) {
  return draw_local(spec, dtype, call.index, distribution, call.context.seed(), call.stream, call.context.rows());
}

at::Tensor drawn(const LocalCall& call, c10::ScalarType dtype, const rng::Distribution& distribution) {
  return drawn(call, *call.plan.results[0], dtype, distribution);
}

at::Tensor drawn_open(const LocalCall& call, const TensorSpec& spec) {
  return drawn(call, spec, c10::kDouble, rng::uniform(0x1p-54, 1));
}

at::Tensor logarithm(const at::Tensor& x) {
  return x.is_cpu() ? kernels::apply(kernels::loops::Function::kLog, x) : at::log(x);
}

void give(const LocalCall& call, torch::jit::Stack& stack, const at::Tensor& values) {
  const auto& result = *call.plan.results[0];
  const auto declared = values.to(result.dtype);
  stack = {call.plan.written >= 0 ? call.tensor(stack, "self").copy_(declared) : declared.to(storage(result))};
}

std::vector<ResultShape> like_first(const Call& call) { return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}}; }

void check_floating(const LocalCall& call) {
  const auto dtype = call.plan.results[0]->dtype;
  if (!c10::isFloatingType(dtype))
    fail<BadInput>("{} draws real numbers, which {} does not hold", call.op.schema().name(), c10::toString(dtype));
}

}  // namespace lockstep::draws
