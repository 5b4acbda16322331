// Experts' rows: taken from tokens, multiplied with their experts' matrices, and added up for their tokens.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/kernels/experts/expert_products.h"
#include "runtime/kernels/experts/expert_rows.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/expert_ops.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/parameter_gradients.h"
#include "runtime/planning/canonical_local.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/tensor/domain.h"
#include "runtime/tensor/packed_rows.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int kCells = 3;  ///< sample, expert, position

// Plain tensors: all rows are there.

void require_real(const char* op, std::initializer_list<Tensor> all) {
  for (const auto& tensor : all)
    if (!is_real(tensor.scalar_type()))
      fail<BadInput>("mesh::{}: an operand holds {}, expected float32, bfloat16 or float16", op,
                     c10::toString(tensor.scalar_type()));
}

Tensor all_present(const Tensor& rows) {
  return at::ones(rows.sizes().slice(0, kCells), rows.options().dtype(c10::kBool));
}

void require_known(const Tensor& experts, int64_t count) {
  if (experts.numel() > 0 && experts.ge(count).any().item<bool>())
    fail<BadInput>("mesh::expert_rows: a token chose expert {} of {}", experts.max().item<int64_t>(), count);
}

Tensor plain_rows(const Tensor& x, const Tensor& experts, const MaybeTensor& weights, int64_t count) {
  require_real("expert_rows", {x, weights.value_or(x)});
  require_known(experts, count);
  const auto [rows, present] = kernels::expert_rows(x, experts, weights, 0, count);
  return unpacked(rows, present);
}

Tensor plain_sums(const Tensor& rows, const Tensor& experts, const MaybeTensor& weights) {
  require_real("expert_sums", {rows, weights.value_or(rows)});
  return kernels::expert_sums(rows.flatten(0, 2), all_present(rows), experts, weights);
}

Tensor plain_factors(const Tensor& rows, const Tensor& x, const Tensor& experts) {
  require_real("expert_factors", {rows, x});
  return kernels::expert_factors(rows.flatten(0, 2), all_present(rows), x, experts);
}

Tensor plain_linear(const Tensor& rows, const Tensor& weight) {
  require_real("expert_linear", {rows, weight});
  return at::matmul(rows, weight.transpose(1, 2));
}

Tensor plain_sample_gradient(const Tensor& gradient, const Tensor& rows) {
  require_real("expert_weight_gradient", {gradient, rows});
  return at::matmul(gradient.transpose(2, 3), rows);
}

Tensor plain_weight_gradient(const Tensor& gradient, const Tensor& rows) {
  return plain_sample_gradient(gradient, rows).sum(0);
}

// Shapes.

/// Choices are int64; all else is of one floating dtype, but for weights, which are of any.
void require_numbers(const Call& call) {
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const auto& name = call.schema.arguments()[static_cast<size_t>(call.slots[i].argument)].name();
    const auto dtype = call.operand_dtypes[i];
    if (name == "experts" ? dtype != c10::kLong : !is_real(dtype))
      fail<BadInput>("{}: {} holds {}, expected {}", call.op, name, c10::toString(dtype),
                     name == "experts" ? "int64" : "float32, bfloat16 or float16");
    if (name != "experts" && name != "weights" && dtype != call.operand_dtypes[0])
      fail<BadInput>("{}: {} holds {} beside {}", call.op, name, c10::toString(dtype),
                     c10::toString(call.operand_dtypes[0]));
  }
}

std::vector<ResultShape> rows_shape(const Call& call) {
  require_numbers(call);
  const auto& x = call.sizes_of("x");
  const int64_t choices = call.sizes_of("experts").back(), count = call.argument("count").toInt();
  if (count < 1) fail<BadInput>("{}: {} experts", call.op, count);
  return {{{x[0], count, x[1], x[2]}, {}, call.dtype_of("x"), {kCells, x[0] * x[1] * std::min(choices, count)}}};
}

std::vector<ResultShape> sums_shape(const Call& call) {
  require_numbers(call);
  const auto& rows = call.sizes_of("rows");
  return {{{rows[0], rows[2], rows[3]}, {}, call.dtype_of("rows")}};
}

std::vector<ResultShape> factors_shape(const Call& call) {
  require_numbers(call);
  const auto& x = call.sizes_of("x");
  return {{{x[0], x[1], call.sizes_of("experts").back(), x[2]},
           {},
           accumulation(Domain::kDeclared, call.dtype_of("rows"))}};
}

std::vector<ResultShape> linear_shape(const Call& call) {
  require_numbers(call);
  auto sizes = call.sizes_of("rows");
  sizes.back() = call.sizes_of("weight")[1];
  return {{sizes, {}, call.dtype_of("rows")}};
}

std::vector<ResultShape> sample_gradient_shape(const Call& call) {
  require_numbers(call);
  const auto &gradient = call.sizes_of("gradient"), &rows = call.sizes_of("rows");
  return {{{gradient[0], gradient[1], gradient[3], rows[3]}, {}, call.dtype_of("gradient")}};
}

std::vector<ResultShape> weight_gradient_shape(const Call& call) {
  auto shapes = sample_gradient_shape(call);
  shapes[0].sizes.erase(shapes[0].sizes.begin());
  return shapes;
}

// Local calls.

/// What an op takes for rows, as kernels do: packed, or all of them (as a plain tensor has them).
struct RowsHere {
  Tensor rows, present;
  std::vector<int64_t> cells = {};  ///< of what is not packed: its sizes

  /// A result with as many rows, [n, ...] or [nodes, n, ...], as these were given.
  Tensor as_given(const Tensor& result, bool nodes = false) const {
    if (cells.empty()) return result;
    auto sizes = result.sizes().vec();
    const auto at = sizes.begin() + (nodes ? 1 : 0);
    sizes.insert(sizes.erase(at), cells.begin(), cells.end());
    return result.view(sizes);
  }
};

RowsHere rows_here(const LocalCall& call, const torch::jit::Stack& stack, const char* name) {
  const auto given = call.tensor(stack, name);
  const bool is_packed = given.dim() == 2;
  if (is_packed != (call.present != nullptr))
    fail<BadInput>("{}: an operand has packed rows and another all rows", call.op.operator_name().name);
  if (is_packed) return {given, *call.present};
  return {given.flatten(0, 2), all_present(given), given.sizes().slice(0, kCells).vec()};
}

MaybeTensor weights(const LocalCall& call, const torch::jit::Stack& stack) {
  const auto& value = call.argument(stack, "weights");
  return value.isNone() ? std::nullopt : std::optional(value.toTensor());
}

void local_rows(const LocalCall& call, torch::jit::Stack& stack) {
  const auto mine = call.plan.results[0]->cut(call.index, 1);
  const auto experts = call.tensor(stack, "experts");
  require_known(experts, call.argument(stack, "count").toInt());
  auto [rows, cells] =
      kernels::expert_rows(call.tensor(stack, "x"), experts, weights(call, stack), mine.start, mine.length);
  *call.packs = std::move(cells);
  stack = {std::move(rows)};
}

void local_sums(const LocalCall& call, torch::jit::Stack& stack) {
  const auto here = rows_here(call, stack, "rows");
  stack = {kernels::expert_sums(here.rows, here.present, call.tensor(stack, "experts"), weights(call, stack))};
}

void local_factors(const LocalCall& call, torch::jit::Stack& stack) {
  const auto here = rows_here(call, stack, "rows");
  stack = {kernels::expert_factors(here.rows, here.present, call.tensor(stack, "x"), call.tensor(stack, "experts"))};
}

void local_linear(const LocalCall& call, torch::jit::Stack& stack) {
  const auto here = rows_here(call, stack, "rows");
  stack = {here.as_given(kernels::expert_linear(here.rows, here.present, call.tensor(stack, "weight")))};
}

void local_weight_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  const auto gradient = rows_here(call, stack, "gradient"), here = rows_here(call, stack, "rows");
  stack = {kernels::expert_weight_gradient(gradient.rows, here.rows, here.present)};
}

void local_sample_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  const auto gradient = rows_here(call, stack, "gradient"), here = rows_here(call, stack, "rows");
  stack = {plain_sample_gradient(unpacked(gradient.rows, here.present), unpacked(here.rows, here.present))};
}

void canonical_linear(const LocalCall& call, torch::jit::Stack& stack) {
  auto range = contracted_here(call, 0, 3);
  const auto& result = *call.plan.results[0];
  range.rounded_levels = rounded_levels(result.layout.mesh().world(), result.dtype);
  const auto here = rows_here(call, stack, "rows");
  const auto sums = kernels::canonical_expert_linear(here.rows, here.present, call.tensor(stack, "weight"), range);
  stack = {here.as_given(sums, range.stays_open())};
}

void canonical_weight_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  const int64_t rows_of_sample = batch_tree(call).leaf;
  const auto gradient = rows_here(call, stack, "gradient"), here = rows_here(call, stack, "rows");
  stack = {kernels::canonical_expert_weight_gradient(gradient.rows, here.rows, here.present, rows_of_sample,
                                                     contracted_here(call, 0, 0, rows_of_sample))};
}

void canonical_sample_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  const auto gradient = rows_here(call, stack, "gradient"), here = rows_here(call, stack, "rows");
  stack = {
      kernels::canonical_sample_weight_gradient(gradient.rows, here.rows, here.present, contracted_here(call, 0, 2))};
}

// Derivatives.

void refuse_second_derivative() {
  if (is_differentiated_again()) fail<BadInput>("gradients of experts' rows cannot be differentiated again");
}

MaybeTensor maybe(const Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; }

Tensor gradient_of_weights(const Tensor& rows, const Tensor& x, const Tensor& experts, const Tensor& weights) {
  if (!weights.defined()) return {};
  return at::sum(mesh_ops::expert_factors(rows, x, experts), {-1}).to(weights.scalar_type());
}

struct Rows : torch::autograd::Function<Rows> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& experts, const MaybeTensor& weights,
                        int64_t count) {
    context->save_for_backward({x, experts, weights.value_or(Tensor())});
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::expert_rows(x, experts, weights, count);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative();
    const auto saved = context->get_saved_variables();
    return {mesh_ops::expert_sums(gradients[0], saved[1], maybe(saved[2])),
            {},
            gradient_of_weights(gradients[0], saved[0], saved[1], saved[2]),
            {}};
  }
};

struct Sums : torch::autograd::Function<Sums> {
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& experts,
                        const MaybeTensor& weights) {
    context->save_for_backward({rows, experts, weights.value_or(Tensor())});
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::expert_sums(rows, experts, weights);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative();
    const auto saved = context->get_saved_variables();
    return {mesh_ops::expert_rows(gradients[0], saved[1], maybe(saved[2]), saved[0].size(1)),
            {},
            gradient_of_weights(saved[0], gradients[0], saved[1], saved[2])};
  }
};

Tensor matrix_gradient(const Tensor& gradient, const Tensor& rows) {
  if (!is_sharded(gradient) || !sums_by_sample(gradient, 2)) return mesh_ops::expert_weight_gradient(gradient, rows);
  return sum_of_samples(gradient.scalar_type(),
                        [&] { return mesh_ops::expert_sample_weight_gradient(widened(gradient), widened(rows)); });
}

struct ExpertLinear : torch::autograd::Function<ExpertLinear> {
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& weight) {
    context->save_for_backward({rows, weight});
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::expert_linear(rows, weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative();
    const auto saved = context->get_saved_variables();
    variable_list result(2);
    if (context->needs_input_grad(0)) result[0] = mesh_ops::expert_linear(gradients[0], saved[1].transpose(1, 2));
    if (context->needs_input_grad(1)) result[1] = matrix_gradient(gradients[0], saved[0]);
    return result;
  }
};

Tensor differentiable_rows(const Tensor& x, const Tensor& experts, const MaybeTensor& weights, int64_t count) {
  return Rows::apply(x, experts, weights, count);
}
Tensor differentiable_sums(const Tensor& rows, const Tensor& experts, const MaybeTensor& weights) {
  return Sums::apply(rows, experts, weights);
}
Tensor differentiable_linear(const Tensor& rows, const Tensor& weight) { return ExpertLinear::apply(rows, weight); }

void register_derivatives(torch::Library& /*aten*/, torch::Library& mesh) {
  mesh.impl("expert_rows", TORCH_FN(differentiable_rows));
  mesh.impl("expert_sums", TORCH_FN(differentiable_sums));
  mesh.impl("expert_linear", TORCH_FN(differentiable_linear));
}

constexpr OwnOp kOps[] = {
    {.schema = "expert_rows(Tensor x, Tensor experts, Tensor? weights, int count) -> Tensor",
     .on_cpu = kernel<plain_rows>,
     .on_gpu = kernel<plain_rows>,
     .rule = {"mesh::expert_rows", "expert", "blw,blK,blK->belw", "-", Rule::kPacks, nullptr, rows_shape, local_rows}},
    {.schema = "expert_sums(Tensor rows, Tensor experts, Tensor? weights) -> Tensor",
     .on_cpu = kernel<plain_sums>,
     .on_gpu = kernel<plain_sums>,
     .rule = {"mesh::expert_sums", "expert", "bElw,blK,blK->blw", "-", Rule::kUnpacks, nullptr, sums_shape,
              local_sums}},
    {.schema = "expert_factors(Tensor rows, Tensor x, Tensor experts) -> Tensor",
     .on_cpu = kernel<plain_factors>,
     .on_gpu = kernel<plain_factors>,
     .rule = {"mesh::expert_factors", "expert", "bElw,blw,blK->blKw", "-", Rule::kUnpacks, nullptr, factors_shape,
              local_factors}},
    {.schema = "expert_linear(Tensor rows, Tensor weight) -> Tensor",
     .on_cpu = kernel<plain_linear>,
     .on_gpu = kernel<plain_linear>,
     .rule = {"mesh::expert_linear", "expert", "beli,eoi->belo", "-", Rule::kOfRows, nullptr, linear_shape,
              local_linear},
     .canonical = {canonical_linear, Rule::kRounds}},
    {.schema = "expert_weight_gradient(Tensor gradient, Tensor rows) -> Tensor",
     .on_cpu = kernel<plain_weight_gradient>,
     .on_gpu = kernel<plain_weight_gradient>,
     .rule = {"mesh::expert_weight_gradient", "expert", "belo,beli->eoi", "-", Rule::kUnpacks, nullptr,
              weight_gradient_shape, local_weight_gradient},
     .canonical = {canonical_weight_gradient, Rule::kSamples}},
    {.schema = "expert_sample_weight_gradient(Tensor gradient, Tensor rows) -> Tensor",
     .on_cpu = kernel<plain_sample_gradient>,
     .on_gpu = kernel<plain_sample_gradient>,
     .rule = {"mesh::expert_sample_weight_gradient", "expert", "belo,beli->beoi", "-", Rule::kUnpacks, nullptr,
              sample_gradient_shape, local_sample_gradient},
     .canonical = {canonical_sample_gradient}},
};

}  // namespace

OwnOpFamily experts() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor expert_rows(const Tensor& x, const Tensor& experts, const MaybeTensor& weights, int64_t count) {
  static const auto op = own_ops::typed_op<own_ops::plain_rows>("mesh::expert_rows");
  return op.call(x, experts, weights, count);
}

Tensor expert_sums(const Tensor& rows, const Tensor& experts, const MaybeTensor& weights) {
  static const auto op = own_ops::typed_op<own_ops::plain_sums>("mesh::expert_sums");
  return op.call(rows, experts, weights);
}

Tensor expert_linear(const Tensor& rows, const Tensor& weight) {
  static const auto op = own_ops::typed_op<own_ops::plain_linear>("mesh::expert_linear");
  return op.call(rows, weight);
}

Tensor expert_factors(const Tensor& rows, const Tensor& x, const Tensor& experts) {
  static const auto op = own_ops::typed_op<own_ops::plain_factors>("mesh::expert_factors");
  return op.call(rows, x, experts);
}

Tensor expert_weight_gradient(const Tensor& gradient, const Tensor& rows) {
  static const auto op = own_ops::typed_op<own_ops::plain_weight_gradient>("mesh::expert_weight_gradient");
  return op.call(gradient, rows);
}

Tensor expert_sample_weight_gradient(const Tensor& gradient, const Tensor& rows) {
  static const auto op = own_ops::typed_op<own_ops::plain_sample_gradient>("mesh::expert_sample_weight_gradient");
  return op.call(gradient, rows);
}

}  // namespace mesh_ops
}  // namespace lockstep
