// Ops along dimensions that are whole on every rank, while all others may be cut: reductions that are no plain sums,
// scans, sorting, and what reads or writes by index.
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

using Shapes = std::vector<ResultShape> (*)(const Call&);

constexpr Rule along(const char* family, Shapes shapes = nullptr, LocalFunction local = local_unless_empty) {
  return {"", family, "all but dim", "-", Rule::kPlain, all_but_named, shapes, local};
}
/// What reads indices runs on ranks that have nothing, too: indices that are none are an error all the same.
constexpr Rule by_index(Shapes shapes = nullptr) { return along("index", shapes, nullptr); }

/// Sizes without the dimensions that are reduced.
std::vector<int64_t> reduced_sizes(const Call& call) {
  const auto& first = call.operand_sizes[0];
  if (!has_argument(call.schema, "dim")) return {};
  const auto& dim = call.argument("dim");
  std::vector<int> dims =
      dim.isInt() ? std::vector<int>{call.dimension("dim", call.dims(0))} : call.dimensions("dim", call.dims(0));
  const bool keep = has_argument(call.schema, "keepdim") && call.argument("keepdim").toBool();
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < first.size(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end();
    if (!reduced || keep) sizes.push_back(reduced ? 1 : first[d]);
  }
  return sizes;
}

/// One of the elements, of which there has to be one.
std::vector<ResultShape> one_of_all(const Call& call) {
  if (c10::multiply_integers(call.operand_sizes[0]) == 0)
    fail<BadInput>("{}: a tensor of sizes {} has no elements", call.op,
                   c10::str(c10::IntArrayRef(call.operand_sizes[0])));
  return {{{}, {}, call.operand_dtypes[0]}};
}

std::vector<ResultShape> counted(const Call& call) { return {{reduced_sizes(call), {}, c10::kLong}}; }

/// One result, or two (a variance and a mean), of the operand's dtype.
std::vector<ResultShape> of_own_dtype(const Call& call) {
  return std::vector<ResultShape>(call.schema.returns().size(), {reduced_sizes(call), {}, call.operand_dtypes[0]});
}

std::vector<ResultShape> summed(const Call& call) {
  auto dtype = call.operand_dtypes[0];
  if (has_argument(call.schema, "dtype") && !call.argument("dtype").isNone())
    dtype = call.argument("dtype").toScalarType();
  else if (c10::isIntegralType(dtype, /*includeBool=*/true))
    dtype = c10::kLong;
  return {{reduced_sizes(call), {}, dtype}};
}

std::vector<ResultShape> like_and_indices(const Call& call) {
  return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}, {call.operand_sizes[0], {}, c10::kLong}};
}

/// As many along the dimension as there are indices.
std::vector<ResultShape> selected_by_index(const Call& call) {
  const auto& index = call.sizes_of("index");
  if (index.size() > 1) fail<BadInput>("{}: the index should have one dimension, not {}", call.op, index.size());
  const auto dtype = call.dtype_of("index");
  if (dtype != c10::kLong && dtype != c10::kInt)
    fail<BadInput>("{}: the index should hold integers, not {}", call.op, c10::toString(dtype));
  auto sizes = call.operand_sizes[0];
  const auto dim = call.dimension("dim", call.dims(0));
  const int64_t count = index.empty() ? 1 : index[0];
  if (sizes.empty() && count != 1) fail<BadInput>("{}: {} indices of a tensor without dimensions", call.op, count);
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = count;
  return {{sizes, {}, call.operand_dtypes[0]}};
}

/// LibTorch would broadcast the gradient, half of the operand along the dimension.
std::vector<ResultShape> of_halves(const Call& call) {
  const auto& self = call.sizes_of("self");
  auto half = self;
  if (half.empty()) fail<BadInput>("{}: the operand has no dimensions", call.op);
  auto& along = half[static_cast<size_t>(call.dimension("dim", static_cast<int64_t>(self.size())))];
  if (along % 2 != 0) fail<BadInput>("{}: the dimension has {} elements, which has no half", call.op, along);
  along /= 2;
  if (call.operand_sizes[0] != half || call.operand_dtypes[0] != call.dtype_of("self"))
    fail<BadInput>("{}: a gradient {} of sizes {} for {}, expected {}", call.op, c10::toString(call.operand_dtypes[0]),
                   c10::str(c10::IntArrayRef(call.operand_sizes[0])), c10::toString(call.dtype_of("self")),
                   c10::str(c10::IntArrayRef(half)));
  return {{self, {}, call.dtype_of("self")}};
}

std::vector<Rule> make_rows() {
  std::vector<Rule> rows;
  add_rows(
      rows, along("along dims"),
      {"all", "all.dim", "all.dims", "amin", "aminmax", "any", "any.dim", "any.dims", "argmax", "argmin",
       "linalg_vector_norm", "max.dim", "min.dim", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype", "prod.dim_int"});
  add_rows(rows, along("along dims", of_own_dtype),
           {"median", "nanmedian", "std.correction", "std_mean.correction", "var.correction", "var_mean.correction"});
  add_rows(rows, along("along dims", one_of_all), {"max", "min"});
  add_rows(rows, along("along dims", counted), {"count_nonzero", "count_nonzero.dim_IntList"});
  add_rows(rows, along("along dims", summed), {"logsumexp", "nansum", "prod"});
  add_rows(rows, along("sorting", reduced_shapes), {"kthvalue", "median.dim", "mode", "nanmedian.dim"});
  add_rows(rows, along("sorting"), {"sort", "sort.stable", "topk"});
  add_rows(rows, along("scan"), {"cumprod", "cumsum"});
  add_rows(rows, along("along dims"), {"glu"});
  add_rows(rows, along("along dims", of_halves), {"glu_backward"});
  add_rows(rows, along("scan", like_and_indices), {"cummax", "cummin"});
  add_rows(rows, along("scan", shapes_like_first), {"logcumsumexp"});
  add_rows(rows, by_index(),
           {"gather", "index_add", "index_copy", "index_reduce", "scatter.reduce", "scatter.src", "scatter.value",
            "scatter.value_reduce", "scatter_add", "scatter_reduce.two"});
  add_rows(rows, by_index(selected_by_index), {"index_select"});
  add_rows(rows, by_index(shapes_like_first), {"index_fill.int_Scalar", "index_fill.int_Tensor"});
  add_rows(rows, along("along dims", shapes_like_first), {"flip", "roll"});
  return rows;
}

}  // namespace

std::span<const Rule> along_dims() {
  static const auto rows = make_rows();
  return rows;
}

}  // namespace lockstep::rules
