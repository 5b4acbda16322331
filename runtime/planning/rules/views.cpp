// Ops that rearrange elements: exactly linear, and a shard's view is the view of the shard.
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

/// Labels 0, 1, ... for `count` dimensions.
OpShardingDims labelled(int64_t count) {
  OpShardingDims dims;
  for (int64_t d = 0; d < count; ++d) dims.push_back({static_cast<int>(d)});
  return dims;
}

OpSharding one_to_one(const Call& call, OpShardingDims result) {
  OpSharding sharding;
  sharding.operands = {labelled(call.dims(0))};
  sharding.results.assign(call.results.size(), result);
  sharding.can_reduce = false;
  return sharding;
}

OpSharding same_dims(const Call& call) { return one_to_one(call, labelled(call.dims(0))); }

OpSharding transposed(const Call& call) {
  auto dims = labelled(call.dims(0));
  if (!dims.empty())
    std::swap(dims[static_cast<size_t>(call.dimension("dim0", call.dims(0)))],
              dims[static_cast<size_t>(call.dimension("dim1", call.dims(0)))]);
  return one_to_one(call, dims);
}

OpSharding matrix_transposed(const Call& call) {
  auto dims = labelled(call.dims(0));
  if (dims.size() == 2) std::swap(dims[0], dims[1]);
  return one_to_one(call, dims);
}

OpSharding permuted(const Call& call) {
  OpShardingDims dims;
  for (const int source : call.dimensions("dims", call.dims(0))) dims.push_back({source});
  return one_to_one(call, dims);
}

OpSharding with_new_dim(const Call& call, int at) {
  auto dims = labelled(call.dims(0));
  dims.insert(dims.begin() + at, OpShardingDim{});
  return one_to_one(call, dims);
}

OpSharding unsqueezed(const Call& call) { return with_new_dim(call, call.dimension("dim", call.dims(0) + 1)); }

/// The dimensions that an op of the squeeze family names: all without an argument, none for an empty list.
std::vector<int> named_dims(const Call& call) {
  if (!has_argument(call.schema, "dim")) return all_dimensions(call.dims(0));
  if (call.argument("dim").isInt()) return {call.dimension("dim", call.dims(0))};
  return call.argument("dim").toIntVector().empty() ? std::vector<int>{} : call.dimensions("dim", call.dims(0));
}

/// Without the dimensions that are squeezed (size 1, globally).
OpSharding squeezed(const Call& call) {
  const auto named = named_dims(call);
  OpShardingDims dims;
  for (int d = 0; d < call.dims(0); ++d) {
    const bool is_named = std::find(named.begin(), named.end(), d) != named.end();
    if (!is_named || call.operand_sizes[0][static_cast<size_t>(d)] != 1) dims.push_back({d});
  }
  return one_to_one(call, dims);
}

/// Size-1 dimensions that grow are whole in the operand and any label in the result stays whole too.
OpSharding expanded(const Call& call) {
  const auto& from = call.operand_sizes[0];
  const auto& to = call.results[0].sizes;
  const size_t offset = to.size() - from.size();
  OpSharding sharding = one_to_one(call, OpShardingDims(to.size(), OpShardingDim{}));
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d + offset])
      sharding.results[0][d + offset] = {static_cast<int>(d)};
    else
      sharding.operands[0][d] = {};
  }
  return sharding;
}

/// Walks both size lists together; within a stretch of equal product the leftmost dimensions share a label, in units of
/// the smaller one.
OpSharding viewed(const Call& call) {
  const auto& from = call.operand_sizes[0];
  const auto& to = call.results[0].sizes;
  if (c10::multiply_integers(from) != c10::multiply_integers(to))  // LibTorch's meta kernels do not look
    fail<BadInput>("{}: sizes {} do not fit a tensor of sizes {}", call.op, c10::str(to), c10::str(from));
  OpSharding sharding = one_to_one(call, OpShardingDims(to.size(), OpShardingDim{}));
  sharding.operands[0].assign(from.size(), OpShardingDim{});
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    if ((from[i] == 1) != (to[j] == 1)) {  // a dimension of one element comes or goes
      ++(from[i] == 1 ? i : j);
      continue;
    }
    const size_t first_i = i, first_j = j;
    int64_t left = from[i++], right = to[j++];
    if (left == 0 || right == 0) {
      if (left != right) break;
    }
    while (left != right) {
      if (left < right) {
        if (i == from.size()) return sharding;
        left *= from[i++];
      } else {
        if (j == to.size()) return sharding;
        right *= to[j++];
      }
    }
    const int64_t a = from[first_i], b = to[first_j], units = std::min(a, b);
    if (units > 0 && a % units == 0 && b % units == 0) {
      sharding.operands[0][first_i] = {static_cast<int>(first_i), a / units};
      sharding.results[0][first_j] = {static_cast<int>(first_i), b / units};
    } else if (a == b) {
      sharding.operands[0][first_i] = sharding.results[0][first_j] = {static_cast<int>(first_i)};
    }
  }
  return sharding;
}

/// One dimension must be whole; `drop` removes it from the results.
OpSharding along(const Call& call, int dim, bool drop) {
  auto dims = labelled(call.dims(0));
  OpSharding sharding = one_to_one(call, dims);
  sharding.operands[0][static_cast<size_t>(dim)] = {};
  for (auto& result : sharding.results) {
    if (drop)
      result.erase(result.begin() + dim);
    else
      result[static_cast<size_t>(dim)] = {};
  }
  return sharding;
}

OpSharding selected(const Call& call) { return along(call, call.dimension("dim", call.dims(0)), true); }

OpSharding sliced(const Call& call) {
  const int dim = call.dimension("dim", call.dims(0));
  const bool whole = call.results[0].sizes[static_cast<size_t>(dim)] == call.operand_sizes[0][static_cast<size_t>(dim)];
  return whole ? same_dims(call) : along(call, dim, false);
}

OpSharding split(const Call& call) { return along(call, call.dimension("dim", call.dims(0)), false); }
OpSharding unbound(const Call& call) { return along(call, call.dimension("dim", call.dims(0)), true); }

OpSharding concatenated(const Call& call) {
  const auto count = static_cast<int64_t>(call.results[0].sizes.size());
  auto dims = labelled(count);
  dims[static_cast<size_t>(call.dimension("dim", count))] = {};
  OpSharding sharding;
  sharding.operands.assign(call.slots.size(), dims);
  for (size_t i = 0; i < call.slots.size(); ++i)
    if (call.dims(i) != count)
      sharding.operands[i] = OpShardingDims(static_cast<size_t>(call.dims(i)), OpShardingDim{});
  sharding.results = {dims};
  sharding.can_reduce = false;
  return sharding;
}

OpSharding stacked(const Call& call) {
  const int dim = call.dimension("dim", call.dims(0) + 1);
  auto dims = labelled(call.dims(0));
  OpSharding sharding;
  sharding.operands.assign(call.slots.size(), dims);
  dims.insert(dims.begin() + dim, OpShardingDim{});
  sharding.results = {dims};
  sharding.can_reduce = false;
  return sharding;
}

/// LibTorch broadcasts a gradient of fewer or smaller dimensions into place; autograd never gives one.
void require_whole_gradient(const Call& call, bool selects, int dim) {
  const auto& given = call.operand_sizes[0];
  auto wanted = call.results[0].sizes;
  if (selects)
    wanted.erase(wanted.begin() + dim);
  else if (given.size() == wanted.size())
    wanted[static_cast<size_t>(dim)] = given[static_cast<size_t>(dim)];
  if (given != wanted)
    fail<BadInput>("{}: a gradient {} does not fit an input {} without or along dimension {}; expected {}", call.op,
                   c10::str(c10::IntArrayRef(given)), c10::str(c10::IntArrayRef(call.results[0].sizes)), dim,
                   c10::str(c10::IntArrayRef(wanted)));
}

/// Backward of slice and select: the dimension is whole in the result.
OpSharding placed_back(const Call& call) {
  const auto count = static_cast<int64_t>(call.results[0].sizes.size());
  const int dim = call.dimension("dim", count);
  const bool selects = has_argument(call.schema, "index");
  require_whole_gradient(call, selects, dim);
  auto dims = labelled(count);
  OpSharding sharding;
  sharding.results = {dims};
  sharding.results[0][static_cast<size_t>(dim)] = {};
  if (selects)
    dims.erase(dims.begin() + dim);
  else
    dims[static_cast<size_t>(dim)] = {};
  sharding.operands = {dims};
  sharding.can_reduce = false;
  return sharding;
}

void local_view(const LocalCall& call, torch::jit::Stack& stack) {
  stack = {call.tensor(stack, "self").view(call.plan.results[0]->local_sizes[call.index])};
}
void local_reshape_copy(const LocalCall& call, torch::jit::Stack& stack) {
  stack = {call.tensor(stack, "self").reshape(call.plan.results[0]->local_sizes[call.index])};
}
void local_expand(const LocalCall& call, torch::jit::Stack& stack) {
  stack = {call.tensor(stack, "self").expand(call.plan.results[0]->local_sizes[call.index])};
}
/// A local shard may have size 1 where the tensor has not, so the dimensions are taken from the plan.
void local_squeeze(const LocalCall& call, torch::jit::Stack& stack) {
  auto tensor = call.tensor(stack, "self");
  const auto& sizes = call.plan.wanted[0]->sizes;
  const auto& result = call.plan.results[0]->sizes;
  std::vector<int64_t> dims;
  if (sizes.size() != result.size()) {
    const bool all = !has_argument(call.op.schema(), "dim");
    for (size_t d = 0; d < sizes.size(); ++d) {
      const auto named = [&] {
        if (all) return true;
        const auto& given = call.argument(stack, "dim");
        const auto asked = given.isInt() ? std::vector<int64_t>{given.toInt()} : given.toIntVector();
        const auto dim = static_cast<int64_t>(d), count = static_cast<int64_t>(sizes.size());
        return std::any_of(asked.begin(), asked.end(), [&](int64_t a) { return a == dim || a + count == dim; });
      };
      if (sizes[d] == 1 && named()) dims.push_back(static_cast<int64_t>(d));
    }
  }
  stack = {dims.empty() ? tensor.alias() : tensor.squeeze(dims)};
}
/// The size argument is the local result's.
void local_sizes_argument(const LocalCall& call, torch::jit::Stack& stack) {
  call.set_argument(stack, "input_sizes", call.plan.results[0]->local_sizes[call.index]);
  call.op.callBoxed(stack);
}

constexpr Rule view_row(const char* op, const char* dims, OpSharding (*sharding)(const Call&),
                        LocalFunction local = nullptr, const char* linearity = "e") {
  return {op, "view", dims, linearity, Rule::kExact | Rule::kRearranges, sharding, nullptr, local};
}

constexpr Rule kRows[] = {
    view_row("_reshape_alias", "sizes split and merge at their left ends", viewed, local_view),
    view_row("_unsafe_view", "sizes split and merge at their left ends", viewed, local_reshape_copy),
    view_row("alias", "...->...", same_dims),
    view_row("cat", "all but dim", concatenated, nullptr, "j"),
    view_row("detach", "...->...", same_dims),
    view_row("expand", "all but the dimensions that grow", expanded, local_expand),
    view_row("permute", "dims permuted", permuted),
    view_row("select.int", "all but dim", selected),
    view_row("select_backward", "all but dim", placed_back, local_sizes_argument),
    view_row("slice.Tensor", "all but dim", sliced),
    view_row("slice_backward", "all but dim", placed_back, local_sizes_argument),
    view_row("split.Tensor", "all but dim", split),
    view_row("split_with_sizes", "all but dim", split),
    view_row("squeeze", "without dims of size 1", squeezed, local_squeeze),
    view_row("squeeze.dim", "without dims of size 1", squeezed, local_squeeze),
    view_row("squeeze.dims", "without dims of size 1", squeezed, local_squeeze),
    view_row("stack", "a new dim", stacked, nullptr, "j"),
    view_row("t", "ab->ba", matrix_transposed),
    view_row("transpose.int", "two dims swapped", transposed),
    view_row("unbind.int", "all but dim", unbound),
    view_row("unsafe_split.Tensor", "all but dim", split),
    view_row("unsqueeze", "a new dim", unsqueezed),
    view_row("view", "sizes split and merge at their left ends", viewed, local_view),
};

}  // namespace

std::span<const Rule> views() { return kRows; }

}  // namespace lockstep::rules
