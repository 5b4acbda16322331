// What attention with dropout draws its weights' factors from: names of elements, drawn nowhere before the kernels do.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/kernels/tensors/attention_rows.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/attention_shapes.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

static_assert(mesh_ops::kAttentionDraws == kernels::kAttentionDraws);
constexpr int kBatch = 0, kHeads = 1, kLength = 2;

OpSharding sharding(const Call&) {
  OpSharding sharding;
  sharding.operands = {{{0}, {1}, {2}, {}}};
  sharding.results = {{{0}, {1}, {2}, {}}};
  return sharding;
}

std::vector<ResultShape> shapes(const Call& call) {
  auto sizes = call.operand_sizes[0];
  if (sizes.size() != 4)
    fail<BadInput>("{}: the query should be [batch, heads, length, size]; it has {} dimensions", call.op, sizes.size());
  if (call.argument("keys").toInt() < 0) fail<BadInput>("{}: {} keys", call.op, call.argument("keys").toInt());
  sizes.back() = mesh_ops::kAttentionDraws;
  return {{sizes, {}, c10::kLong}};
}

Tensor numbers(const Range& range, const at::TensorOptions& options) {
  return at::arange(range.start, range.end(), options);
}

/// Elements of the matrix of all weights of the global batch, [samples, heads, length, keys]; counted where the query
/// is, so that no table of them goes to a GPU.
void local_draws(const LocalCall& call, torch::jit::Stack& stack) {
  const auto& spec = *call.plan.results[0];
  const int64_t keys = call.argument(stack, "keys").toInt(), first_row = call.argument(stack, "first_row").toInt();
  const auto options = call.tensor(stack, "query").options().dtype(c10::kLong);
  std::vector<Tensor> samples{at::empty({0}, options)};
  for (const auto& run : call.context.rows().seen_by(spec.sizes[kBatch]).runs(spec.cut(call.index, kBatch)))
    samples.push_back(numbers({run.rows.start + run.shift, run.rows.length}, options));
  const auto heads = numbers(spec.cut(call.index, kHeads), options).view({-1, 1});
  const auto rows = numbers(spec.cut(call.index, kLength), options);
  const auto rows_of_all =
      (at::cat(samples).view({-1, 1, 1}) * spec.sizes[kHeads] + heads) * spec.sizes[kLength] + rows;
  const auto own = rows_of_all * keys + (rows + first_row);
  LOCKSTEP_CHECK_EQ(own.size(0), spec.cut(call.index, kBatch).length);  // runs of a batch leave no sample out
  const auto seed = static_cast<int64_t>(call.context.seed()), stream = static_cast<int64_t>(call.stream);
  stack = {at::stack({at::full_like(own, seed), at::full_like(own, stream), own}, -1)};
}

constexpr OwnOp kOps[] = {
    {.schema = "attention_draws(Tensor query, int keys, int first_row) -> Tensor",
     .on_cpu = kernel<kernels::attention_draws>,
     .on_gpu = kernel<kernels::attention_draws>,
     .rule = {"mesh::attention_draws", "attention", "bhld->bhlr", "-", Rule::kRandom, sharding, shapes, local_draws},
     .canonical = {.on_gpu = true}},
};

}  // namespace

OwnOpFamily attention_draws() { return {kOps}; }

}  // namespace own_ops

namespace mesh_ops {

bool drops_weights(double share) { return kernels::drops_weights(share); }

Tensor attention_draws(const Tensor& query, int64_t keys, int64_t first_row) {
  const at::AutoDispatchBelowAutograd below;  // a query's sizes have no derivative
  static const auto op = own_ops::typed_op<kernels::attention_draws>("mesh::attention_draws");
  return op.call(query, keys, first_row);
}

}  // namespace mesh_ops
}  // namespace lockstep
