// Sums and maxima over all elements: of the gradient norm, and of losses.
#include "core/error.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

/// Two integers for all elements.
OpSharding to_integers(const Call& call) {
  auto sharding = reduced_over_all(call);
  sharding.results = {{{}}};
  return sharding;
}

std::vector<ResultShape> two_integers(const Call&) { return {{{2}, {}, c10::kLong}}; }
std::vector<ResultShape> one_double(const Call&) { return {{{}, {}, c10::kDouble}}; }
std::vector<ResultShape> one_wide(const Call& call) {
  return {{{}, {}, call.operand_dtypes[0] == c10::kDouble ? c10::kDouble : c10::kFloat}};
}

constexpr OwnOp kOps[] = {
    {.schema = "absolute_maximum(Tensor x) -> Tensor",
     .on_cpu = kernel<kernels::absolute_maximum>,
     .on_gpu = kernel<kernels::absolute_maximum>,
     .rule = {"mesh::absolute_maximum", "reduction", "...->; max", "-", Rule::kMax, reduced_over_all, one_wide},
     .canonical = {.on_gpu = true}},
    {.schema = "fixed_point_sum(Tensor x) -> Tensor",
     .on_cpu = kernel<kernels::fixed_point_sum>,
     .on_gpu = kernel<kernels::fixed_point_sum>,
     .rule = {"mesh::fixed_point_sum", "reduction", "...->T", "-", Rule::kPlain, to_integers, two_integers},
     .canonical = {.on_gpu = true}},
    {.schema = "scaled_squares(Tensor x, float scale) -> Tensor",
     .on_cpu = kernel<kernels::scaled_squares>,
     .on_gpu = kernel<kernels::scaled_squares>,
     .rule = {"mesh::scaled_squares", "reduction", "...->T", "-", Rule::kTwoWords, to_integers, two_integers},
     .canonical = {.on_gpu = true}},
    {.schema = "sum_of_squares(Tensor x) -> Tensor",
     .on_cpu = kernel<kernels::sum_of_squares>,
     .on_gpu = kernel<on_gpu::sum_of_squares>,
     .rule = {"mesh::sum_of_squares", "reduction", "...->", "-", Rule::kPlain, nullptr, one_double},
     .canonical = {.traits = Rule::kNoReduce}},
};

}  // namespace

OwnOpFamily sums() { return {kOps}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor fixed_point_sum(const Tensor& x) {
  static const auto op = own_ops::typed_op<kernels::fixed_point_sum>("mesh::fixed_point_sum");
  return op.call(x);
}

Tensor absolute_maximum(const Tensor& x) {
  static const auto op = own_ops::typed_op<kernels::absolute_maximum>("mesh::absolute_maximum");
  return op.call(x);
}

Tensor scaled_squares(const Tensor& x, double scale) {
  static const auto op = own_ops::typed_op<kernels::scaled_squares>("mesh::scaled_squares");
  return op.call(x, scale);
}

Tensor sum_of_squares(const Tensor& x) {
  static const auto op = own_ops::typed_op<kernels::sum_of_squares>("mesh::sum_of_squares");
  return op.call(x);
}

}  // namespace mesh_ops
}  // namespace lockstep
