#include "runtime/planning/rules/shardings.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/planning/infer_results.h"
#include "runtime/planning/make_plan.h"

namespace lockstep::rules {
namespace {

constexpr const char* kNames[] = {"dim", "dims", "dim0", "dim1", "dim2"};

void add_named(const Call& call, const char* name, std::vector<int>& all) {
  const auto count = call.dims(0);
  const auto& value = call.argument(name);
  if (value.isInt()) all.push_back(call.dimension(name, count));
  if (value.isIntList() && !value.toIntList().empty())
    for (const int dim : call.dimensions(name, count)) all.push_back(dim);
}

/// The dimensions that must be whole.
std::vector<int> named_dims(const Call& call) {
  std::vector<int> all;
  for (const char* name : kNames)
    if (has_argument(call.schema, name)) add_named(call, name, all);
  return all.empty() ? all_dimensions(call.dims(0)) : all;
}

bool holds(const std::vector<int>& dims, int dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

/// Of a tensor with as many dimensions as operand 0.
OpShardingDims cut_alike(const std::vector<int64_t>& sizes, const std::vector<int64_t>& first,
                         const std::vector<int>& named) {
  OpShardingDims dims(sizes.size(), OpShardingDim{});
  for (size_t d = 0; d < first.size() && sizes.size() == first.size(); ++d)
    if (!holds(named, static_cast<int>(d)) && sizes[d] == first[d]) dims[d] = {static_cast<int>(d)};
  return dims;
}

/// Of a result, which may lack the named dimensions.
OpShardingDims cut_of_result(const std::vector<int64_t>& sizes, const std::vector<int64_t>& first,
                             const std::vector<int>& named) {
  if (sizes.size() == first.size()) return cut_alike(sizes, first, named);
  OpShardingDims dims;
  for (size_t d = 0; d < first.size(); ++d)
    if (!holds(named, static_cast<int>(d))) dims.push_back({static_cast<int>(d)});
  dims.resize(sizes.size(), OpShardingDim{});
  return dims;
}

/// A dimension in which some tensor differs from operand 0 is whole everywhere.
void keep_common(OpSharding& sharding, size_t dim_count) {
  std::vector<bool> common(dim_count, true);
  for (const auto* side : {&sharding.operands, &sharding.results})
    for (const auto& dims : *side)
      for (size_t d = 0; d < dim_count; ++d)
        if ((dims.size() == dim_count || side == &sharding.results) && OpSharding::find(dims, static_cast<int>(d)) < 0)
          common[d] = false;
  for (auto* side : {&sharding.operands, &sharding.results})
    for (auto& dims : *side)
      for (auto& dim : dims)
        if (dim.label != OpShardingDim::kWhole && !common[static_cast<size_t>(dim.label)]) dim = {};
}

c10::Device shard_device(const LocalCall& call, const torch::jit::Stack& stack) {
  const auto& slot = call.plan.slots[0];
  const auto& value = stack[static_cast<size_t>(slot.argument)];
  return slot.element < 0 ? value.toTensor().device() : c10::Device(c10::kCPU);
}

/// A tensor of one element on the CPU; what is no sharded tensor stays.
at::Tensor one_element(const at::Tensor& tensor, c10::ScalarType dtype) {
  if (tensor.device().type() != c10::kPrivateUse1) return tensor;
  return at::ones(std::vector<int64_t>(static_cast<size_t>(tensor.dim()), 1), at::TensorOptions().dtype(dtype));
}

}  // namespace

void add_rows(std::vector<Rule>& rows, const Rule& like, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    rows.push_back(like);
    rows.back().op = name;
  }
}

OpSharding all_but_named(const Call& call) {
  OpSharding sharding;
  sharding.can_reduce = false;
  const auto named = named_dims(call);
  const auto& first = call.operand_sizes[0];
  for (const auto& sizes : call.operand_sizes) sharding.operands.push_back(cut_alike(sizes, first, named));
  for (const auto& result : call.results) sharding.results.push_back(cut_of_result(result.sizes, first, named));
  keep_common(sharding, first.size());
  return sharding;
}

OpSharding whole_but_first(const Call& call) {
  OpSharding sharding = all_whole(call);
  if (call.dims(0) == 0) return sharding;
  const auto size = call.operand_sizes[0][0];
  const auto label = [&](OpShardingDims& dims, const std::vector<int64_t>& sizes) {
    if (!sizes.empty() && sizes[0] == size) dims[0] = {0};
  };
  for (size_t i = 0; i < call.slots.size(); ++i) label(sharding.operands[i], call.operand_sizes[i]);
  for (size_t r = 0; r < call.results.size(); ++r) label(sharding.results[r], call.results[r].sizes);
  return sharding;
}

OpSharding all_whole(const Call& call) {
  OpSharding sharding;
  sharding.can_reduce = false;
  for (const auto& sizes : call.operand_sizes) sharding.operands.emplace_back(sizes.size(), OpShardingDim{});
  for (const auto& result : call.results) sharding.results.emplace_back(result.sizes.size(), OpShardingDim{});
  return sharding;
}

std::vector<c10::ScalarType> dtypes_of_results(const Call& call) {
  const auto op =
      c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.schema.name(), call.schema.overload_name()));
  LOCKSTEP_CHECK(op, "{} is not known to the dispatcher", call.op);
  torch::jit::Stack stack(call.arguments.begin(), call.arguments.end());
  size_t next = 0;
  for_each_tensor(call.arguments, [&](const Slot& slot, const at::Tensor& tensor) {
    set_slot(stack, slot, one_element(tensor, call.operand_dtypes[next++]));
  });
  op->callBoxed(stack);
  std::vector<c10::ScalarType> dtypes;
  for (const auto& value : stack) dtypes.push_back(value.toTensor().scalar_type());
  return dtypes;
}

std::vector<ResultShape> pointwise_shapes(const Call& call) {
  at::Tensor common;
  for_each_tensor(call.arguments, [&](const Slot&, const at::Tensor& tensor) {
    const auto next = meta_like(tensor).to(c10::kFloat);
    common = common.defined() ? at::add(common, next) : at::empty_like(next);
  });
  std::vector<ResultShape> shapes;
  for (const auto dtype : dtypes_of_results(call))
    shapes.push_back({common.sizes().vec(), common.strides().vec(), dtype});
  return shapes;
}

std::vector<ResultShape> shapes_like_first(const Call& call) {
  const auto self = at::empty_like(meta_like(call.arguments[static_cast<size_t>(call.slots[0].argument)].toTensor()));
  return std::vector<ResultShape>(call.schema.returns().size(), shape_of(self));
}

std::vector<ResultShape> reduced_shapes(const Call& call) {
  auto sizes = call.operand_sizes[0];
  const auto dim = call.dimension("dim", call.dims(0));
  const int64_t count = sizes.empty() ? 1 : sizes[static_cast<size_t>(dim)];
  if (count == 0) fail<BadInput>("{}: dimension {} has no elements", call.op, dim);
  if (has_argument(call.schema, "k") && (call.argument("k").toInt() < 1 || call.argument("k").toInt() > count))
    fail<BadInput>("{}: element {} of {} along dimension {}", call.op, call.argument("k").toInt(), count, dim);
  if (!sizes.empty()) {
    if (call.argument("keepdim").toBool())
      sizes[static_cast<size_t>(dim)] = 1;
    else
      sizes.erase(sizes.begin() + dim);
  }
  return {{sizes, {}, call.operand_dtypes[0]}, {sizes, {}, c10::kLong}};
}

bool gives_nothing(const LocalCall& call, torch::jit::Stack& stack) {
  const auto is_empty = [&](const TensorSpec* spec) {
    return c10::multiply_integers(spec->local_sizes[call.index]) == 0;
  };
  const auto& results = call.plan.results;
  if (call.plan.written >= 0 || call.plan.returns_list || !std::all_of(results.begin(), results.end(), is_empty))
    return false;
  torch::jit::Stack empty;
  for (const auto* spec : results)
    empty.emplace_back(at::empty(spec->local_sizes[call.index],
                                 at::TensorOptions().dtype(storage(*spec)).device(shard_device(call, stack))));
  stack = std::move(empty);
  return true;
}

void local_unless_empty(const LocalCall& call, torch::jit::Stack& stack) {
  if (!gives_nothing(call, stack)) call.op.callBoxed(stack);
}

}  // namespace lockstep::rules
