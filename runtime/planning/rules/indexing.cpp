// Views and reads that no row of views.cpp and along.cpp has: by several indices, of diagonals, of windows.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/planning/infer_results.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

/// Which dimensions of "self" have an index. A mask stands for as many as it has.
std::vector<bool> indexed_dims(const Call& call) {
  std::vector<bool> indexed;
  for (const auto& index : call.argument("indices").toOptionalTensorVector()) {
    const bool given = index && index->defined();
    const bool mask = given && (index->scalar_type() == c10::kBool || index->scalar_type() == c10::kByte);
    if (mask)
      fail<BadInput>("{}: how many elements a mask takes is not known before; use masked_select, or where", call.op);
    indexed.push_back(given);
  }
  indexed.resize(call.operand_sizes[0].size(), false);
  return indexed;
}

/// The dimensions of what indices take: those of the indices, all whole, in the place of the first one, or in front
/// where indices have dimensions without one between them; and what has no index.
OpShardingDims taken(const std::vector<bool>& indexed, size_t index_dims) {
  const auto first = std::find(indexed.begin(), indexed.end(), true), end = indexed.end();
  const auto gap = std::find(first, end, false);
  const bool apart = std::find(gap, end, true) != end;
  OpShardingDims dims;
  if (apart) dims.resize(index_dims, OpShardingDim{});
  for (size_t d = 0; d < indexed.size(); ++d) {
    if (!indexed[d]) dims.push_back({static_cast<int>(d)});
    if (!apart && first != end && d == static_cast<size_t>(first - indexed.begin()))
      for (size_t i = 0; i < index_dims; ++i) dims.push_back({});
  }
  return dims;
}

size_t index_dim_count(const Call& call) {
  size_t count = 0;
  for (size_t i = 1; i < call.slots.size(); ++i)
    if (call.slots[i].element >= 0) count = std::max(count, call.operand_sizes[i].size());
  return count;
}

OpSharding read_by_indices(const Call& call) {
  auto sharding = all_whole(call);
  const auto indexed = indexed_dims(call);
  for (size_t d = 0; d < indexed.size(); ++d)
    if (!indexed[d]) sharding.operands[0][d] = {static_cast<int>(d)};
  sharding.results[0] = taken(indexed, index_dim_count(call));
  return sharding;
}

/// What is written lies as what would be read; where it is broadcast it is whole.
OpSharding written_by_indices(const Call& call) {
  auto sharding = all_whole(call);
  const auto indexed = indexed_dims(call);
  for (size_t d = 0; d < indexed.size(); ++d)
    if (!indexed[d]) sharding.operands[0][d] = sharding.results[0][d] = {static_cast<int>(d)};
  const auto place = taken(indexed, index_dim_count(call));
  const size_t values = call.operand("values");
  const auto& sizes = call.operand_sizes[values];
  if (sizes.size() > place.size())
    fail<BadInput>("{}: values of sizes {} for {} dimensions", call.op, c10::str(c10::IntArrayRef(sizes)),
                   place.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto label = place[place.size() - sizes.size() + d].label;
    if (label == OpShardingDim::kWhole) continue;
    // No shard is asked: it may have just as many.
    const auto wanted = call.operand_sizes[0][static_cast<size_t>(label)];
    if (sizes[d] == wanted) sharding.operands[values][d] = {label};
    if (sizes[d] != wanted && sizes[d] != 1)
      fail<BadInput>("{}: values of sizes {} do not broadcast to the {} elements of dimension {}", call.op,
                     c10::str(c10::IntArrayRef(sizes)), wanted, label);
  }
  return sharding;
}

OpSharding all_but_two(const Call& call) {
  const auto count = call.dims(0);
  const int first = call.dimension("dim1", count), second = call.dimension("dim2", count);
  auto sharding = all_whole(call);
  size_t next = 0;
  for (int d = 0; d < count; ++d) {
    if (d == first || d == second) continue;
    sharding.operands[0][static_cast<size_t>(d)] = sharding.results[0][next++] = {d};
  }
  return sharding;
}

/// "src" is what a diagonal would be.
OpSharding diagonal_written(const Call& call) {
  const auto whole = meta_like(call.argument("self").toTensor());
  const auto part =
      whole.diagonal(call.argument("offset").toInt(), call.argument("dim1").toInt(), call.argument("dim2").toInt());
  if (part.sizes() != c10::IntArrayRef(call.operand_sizes[1]))
    fail<BadInput>("{}: a source of sizes {} for {}", call.op, c10::str(c10::IntArrayRef(call.operand_sizes[1])),
                   c10::str(part.sizes()));
  auto sharding = all_whole(call);
  const int first = call.dimension("dim1", call.dims(0)), second = call.dimension("dim2", call.dims(0));
  size_t next = 0;
  for (int d = 0; d < call.dims(0); ++d) {
    if (d == first || d == second) continue;
    sharding.operands[0][static_cast<size_t>(d)] = sharding.results[0][static_cast<size_t>(d)] = {d};
    sharding.operands[1][next++] = {d};
  }
  return sharding;
}

OpSharding all_but_unfolded(const Call& call) {
  auto sharding = all_whole(call);
  const int dim = call.dims(0) > 0 ? call.dimension("dimension", call.dims(0)) : 0;
  for (int d = 0; d < call.dims(0); ++d)
    if (d != dim) sharding.operands[0][static_cast<size_t>(d)] = sharding.results[0][static_cast<size_t>(d)] = {d};
  return sharding;
}

/// "src" has the dimensions of "self", or all but `dim`.
OpSharding written_along(const Call& call) {
  auto sharding = all_whole(call);
  const auto& source = call.operand_sizes[1];
  const int dim = call.dimension("dim", call.dims(0));
  const auto whole = meta_like(call.argument("self").toTensor());
  const bool selects = has_argument(call.schema, "index");
  const auto part = selects ? whole.select(dim, call.argument("index").toInt())
                            : at::slice(whole, dim, call.argument("start").toOptional<int64_t>(),
                                        call.argument("end").toOptional<int64_t>(), call.argument("step").toInt());
  if (part.sizes() != c10::IntArrayRef(source))
    fail<BadInput>("{}: a source of sizes {} for {}", call.op, c10::str(c10::IntArrayRef(source)),
                   c10::str(part.sizes()));
  for (int d = 0; d < call.dims(0); ++d) {
    if (d == dim) continue;
    const auto at = static_cast<size_t>(selects && d > dim ? d - 1 : d);
    sharding.operands[0][static_cast<size_t>(d)] = sharding.results[0][static_cast<size_t>(d)] = {d};
    sharding.operands[1][at] = {d};
  }
  return sharding;
}

/// The indices may be cut; what they read is whole.
OpSharding read_flat(const Call& call) {
  auto sharding = all_whole(call);
  const size_t index = call.operand("index");
  for (size_t d = 0; d < call.operand_sizes[index].size(); ++d)
    sharding.operands[index][d] = sharding.results[0][d] = {static_cast<int>(d)};
  return sharding;
}

std::vector<ResultShape> like_index(const Call& call) {
  if (call.dtype_of("index") != c10::kLong)
    fail<BadInput>("{}: the index should hold int64, not {}", call.op, c10::toString(call.dtype_of("index")));
  return {{call.sizes_of("index"), {}, call.operand_dtypes[0]}};
}

/// The mask is broadcast, and what it is of where that is not written.
std::vector<ResultShape> masked_shape(const Call& call) {
  const auto sizes = at::infer_size(call.operand_sizes[0], call.sizes_of("mask"));
  const bool writes = call.schema.arguments()[0].alias_info() != nullptr;
  if (writes && sizes != call.operand_sizes[0])
    fail<BadInput>("{}: a mask of sizes {} for {}", call.op, c10::str(c10::IntArrayRef(call.sizes_of("mask"))),
                   c10::str(c10::IntArrayRef(call.operand_sizes[0])));
  if (call.dtype_of("mask") != c10::kBool) fail<BadInput>("{}: the mask should hold truth values", call.op);
  if (call.dtype_of("source") != call.operand_dtypes[0])
    fail<BadInput>("{}: a source of {} for {}", call.op, c10::toString(call.dtype_of("source")),
                   c10::toString(call.operand_dtypes[0]));
  return {{sizes, {}, call.operand_dtypes[0]}};
}

/// The gradient of windows: "input_sizes" are those of what they slid over.
std::vector<ResultShape> folded(const Call& call) {
  const auto sizes = call.argument("input_sizes").toIntVector();
  const auto dim = call.argument("dim").toInt(), size = call.argument("size").toInt(),
             step = call.argument("step").toInt();
  const auto windows = at::empty(sizes, at::TensorOptions().device(c10::kMeta)).unfold(dim, size, step);
  if (windows.sizes() != c10::IntArrayRef(call.operand_sizes[0]))
    fail<BadInput>("{}: a gradient of sizes {}, expected {}", call.op,
                   c10::str(c10::IntArrayRef(call.operand_sizes[0])), c10::str(windows.sizes()));
  return {{sizes, {}, call.operand_dtypes[0]}};
}

OpSharding all_but_folded(const Call& call) {
  auto sharding = all_whole(call);
  const auto count = static_cast<int64_t>(call.results[0].sizes.size());
  const int dim = call.dimension("dim", count);
  for (int d = 0; d < count; ++d)
    if (d != dim) sharding.operands[0][static_cast<size_t>(d)] = sharding.results[0][static_cast<size_t>(d)] = {d};
  return sharding;
}

void local_folded(const LocalCall& call, torch::jit::Stack& stack) {
  call.set_argument(stack, "input_sizes", call.plan.results[0]->local_sizes[call.index]);
  if (!gives_nothing(call, stack)) call.op.callBoxed(stack);
}

/// The elements may be cut; the boundaries are whole.
template <c10::ScalarType kDefault>
std::vector<ResultShape> bucket_shape(const Call& call) {
  if (call.dims(1) != 1) fail<BadInput>("{}: boundaries have one dimension, not {}", call.op, call.dims(1));
  return {{call.operand_sizes[0], {}, call.argument("out_int32").toBool() ? c10::kInt : kDefault}};
}

OpSharding elements_alone(const Call& call) {
  auto sharding = all_whole(call);
  for (size_t d = 0; d < call.operand_sizes[0].size(); ++d)
    sharding.operands[0][d] = sharding.results[0][d] = {static_cast<int>(d)};
  return sharding;
}

constexpr unsigned kView = Rule::kExact | Rule::kRearranges;

/// LibTorch would set a bit that says how to read the values; a shard has the values themselves.
void local_conjugate(const LocalCall& call, torch::jit::Stack& stack) {
  stack = {at::_conj_physical(call.tensor(stack, "self"))};
}
void local_negative(const LocalCall& call, torch::jit::Stack& stack) { stack = {at::neg(call.tensor(stack, "self"))}; }

constexpr Rule kRows[] = {
    {"_conj", "index", "...->...", "e", Rule::kExact | Rule::kComputedView, nullptr, nullptr, local_conjugate},
    {"_index_put_impl", "index", "what has no index", "-", Rule::kPlain, written_by_indices, shapes_like_first},
    {"_neg_view", "index", "...->...", "e", Rule::kExact | Rule::kComputedView, nullptr, nullptr, local_negative},
    {"bucketize.Tensor", "index", "all of self", "-", Rule::kPlain, elements_alone, bucket_shape<c10::kLong>},
    {"diagonal", "index", "all but dim1 and dim2", "e", kView, all_but_two},
    {"diagonal_scatter", "index", "all but dim1 and dim2", "-", Rule::kPlain, diagonal_written, shapes_like_first},
    {"index.Tensor", "index", "what has no index", "-", Rule::kPlain, read_by_indices},
    {"index_put", "index", "what has no index", "-", Rule::kPlain, written_by_indices, shapes_like_first},
    {"isin.Tensor_Scalar", "index", "all of elements", "-", Rule::kPlain, elements_alone},
    {"isin.Tensor_Tensor", "index", "all of elements", "-", Rule::kPlain, elements_alone},
    {"masked_scatter", "index", "nothing", "-", Rule::kPlain, all_whole, masked_shape},
    {"put", "index", "nothing", "-", Rule::kPlain, all_whole, shapes_like_first},
    {"select_scatter", "index", "all but dim", "-", Rule::kPlain, written_along, shapes_like_first},
    {"slice_scatter", "index", "all but dim", "-", Rule::kPlain, written_along, shapes_like_first},
    {"take", "index", "all of the index", "-", Rule::kPlain, read_flat, like_index},
    {"unfold", "index", "all but dimension", "e", kView, all_but_unfolded},
    {"unfold_backward", "index", "all but dim", "-", Rule::kPlain, all_but_folded, folded, local_folded},
    {"view_as_complex", "index", "...A->...", "e", kView},
    {"view_as_real", "index", "...->...A", "e", kView},
};

}  // namespace

std::span<const Rule> indexing() { return kRows; }

}  // namespace lockstep::rules
