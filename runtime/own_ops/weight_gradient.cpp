// The gradient of a weight: a product summed over all leading dimensions, which LibTorch has no single op for.
#include <ATen/Functions.h>

#include "core/elementary/low_precision.h"
#include "core/error.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/canonical_local.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

/// Canonical numerics has a kernel of the same name.
constexpr Tensor (*kOnCpu)(const Tensor&, const Tensor&) = kernels::weight_gradient;

std::vector<ResultShape> weight_gradient_shape(const Call& call) {
  return {{{call.sizes_of("gradient").back(), call.sizes_of("input").back()}, {}, call.dtype_of("gradient")}};
}

/// Samples first; rows that are no batch are the elements of one sum.
void canonical_weight_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  auto gradient = call.tensor(stack, "gradient"), input = call.tensor(stack, "input");
  const auto& spec = *call.plan.wanted[0];
  const bool is_vector = gradient.dim() == 1;
  if (is_vector) return (void)(stack = {at::outer(gradient, input)});
  const auto tree = batch_tree(call);
  const bool is_batch = spec.sizes.size() > 2 || tree.leaf != SumTree::over_elements(spec.sizes[0]).leaf;
  const auto range = contracted_here(call, 0, 0, is_batch ? tree.leaf : 1);
  if (is_batch && tree.leaf > 1) {
    const auto between = gradient.sizes().slice(1, gradient.sizes().size() - 2);
    const int64_t samples = gradient.size(0) / tree.leaf, rows = tree.leaf * c10::multiply_integers(between);
    gradient = gradient.reshape({samples, rows, gradient.size(-1)});
    input = input.reshape({samples, rows, input.size(-1)});
  }
  stack = {is_batch ? kernels::weight_gradient(gradient, input, range) : kernels::product(gradient.t(), input, range)};
}

std::vector<ResultShape> float8_shape(const Call& call) {
  if (const int64_t format = call.argument("gradient_format").toInt(); format < 0 || format > 1)
    fail<BadInput>("{}: format {} is none of 0 to 1 (core/elementary/low_precision.h)", call.op, format);
  for (const auto* codes : {"gradient", "input"}) require_codes(call, codes);
  const auto dtype = dtype_of_products(call, "gradient_maximum", "input_maximum");
  for (const auto* maximum : {"gradient_maximum", "input_maximum"}) {
    const auto& sizes = call.sizes_of(maximum);
    if (sizes[sizes.size() - 2] != 1)
      fail<BadInput>("{}: {} has {} elements for a column, expected 1", call.op, maximum, sizes[sizes.size() - 2]);
  }
  return {{{call.sizes_of("gradient").back(), call.sizes_of("input").back()}, {}, dtype}};
}

void canonical_float8(const LocalCall& call, torch::jit::Stack& stack) {
  const auto replace = [&](const char* codes, const char* maximum, int64_t format) {
    call.set_argument(stack, codes,
                      kernels::float8_numbers(call.tensor(stack, codes), call.tensor(stack, maximum), format,
                                              call.argument(stack, "power_of_two").toBool()));
  };
  replace("gradient", "gradient_maximum", call.argument(stack, "gradient_format").toInt());
  replace("input", "input_maximum", static_cast<int64_t>(elementary::NumberFormat::kE4m3));
  canonical_weight_gradient(call, stack);
}

constexpr OwnOp kOps[] = {
    {.schema = "float8_weight_gradient(Tensor gradient, Tensor gradient_maximum, Tensor input, Tensor input_maximum, "
               "int gradient_format, bool power_of_two) -> Tensor",
     .on_cpu = kernel<kernels::float8_weight_gradient>,
     .on_gpu = kernel<on_gpu::float8_weight_gradient>,
     .rule = {"mesh::float8_weight_gradient", "low precision", "...ln,...An,...lk,...Bk->nk", "-", Rule::kPlain,
              nullptr, float8_shape},
     .canonical = {canonical_float8, Rule::kSamples, true}},
    {.schema = "weight_gradient(Tensor gradient, Tensor input) -> Tensor",
     .on_cpu = kernel<kOnCpu>,
     .on_gpu = kernel<composed::weight_gradient>,
     .rule = {"mesh::weight_gradient", "matmul", "...n,...k->nk", "ee", Rule::kPlain, nullptr, weight_gradient_shape},
     .canonical = {canonical_weight_gradient, Rule::kSamples, true}},
};

}  // namespace

OwnOpFamily weight_gradient() { return {kOps}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor weight_gradient(const Tensor& gradient, const Tensor& input) {
  static const auto op = own_ops::typed_op<own_ops::kOnCpu>("mesh::weight_gradient");
  return op.call(gradient, input);
}

Tensor float8_weight_gradient(const Tensor& gradient, const Tensor& gradient_maximum, const Tensor& input,
                              const Tensor& input_maximum, int64_t gradient_format, bool power_of_two) {
  static const auto op = own_ops::typed_op<kernels::float8_weight_gradient>("mesh::float8_weight_gradient");
  return op.call(gradient, gradient_maximum, input, input_maximum, gradient_format, power_of_two);
}

}  // namespace mesh_ops
}  // namespace lockstep
