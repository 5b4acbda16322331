// Linear algebra on the last two dimensions, whole; a batch of matrices may be cut. And products that are no row of
// matmul.cpp.
#include <ATen/ExpandUtils.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

constexpr Rule batched(const char* op, const char* dims, std::vector<ResultShape> (*shapes)(const Call&) = nullptr) {
  return {op, "linear algebra", dims, "-", Rule::kPlain, nullptr, shapes, local_unless_empty};
}

void check_matrices(const Call& call) {
  for (const auto& sizes : call.operand_sizes)
    if (sizes.size() < 2)
      fail<BadInput>("{}: an operand has {} dimensions, expected at least 2", call.op, sizes.size());
}

void check_square(const Call& call, size_t operand) {
  const auto& sizes = call.operand_sizes[operand];
  if (sizes.back() != sizes[sizes.size() - 2])
    fail<BadInput>("{}: the matrices should be square, not {}", call.op, c10::str(c10::IntArrayRef(sizes)));
}

void check_floating(const Call& call) {
  for (const auto dtype : call.operand_dtypes)
    if ((!c10::isFloatingType(dtype) && !c10::isComplexType(dtype)) || dtype != call.operand_dtypes[0])
      fail<BadInput>("{}: the operands should be floating numbers of one dtype, not {}", call.op, c10::toString(dtype));
}

/// Columns are contiguous in what LAPACK gives.
ResultShape by_columns(std::vector<int64_t> sizes, c10::ScalarType dtype) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  const auto put = [&](size_t d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  };
  put(sizes.size() - 2), put(sizes.size() - 1);
  for (size_t d = sizes.size() - 2; d-- > 0;) put(d);
  return {std::move(sizes), std::move(strides), dtype};
}

std::vector<ResultShape> square_like(const Call& call) {
  check_matrices(call), check_square(call, 0), check_floating(call);
  return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}};
}

c10::ScalarType complex_of(c10::ScalarType dtype) {
  return c10::isComplexType(dtype) ? dtype : c10::toComplexType(dtype);
}

std::vector<ResultShape> eigenvalues(const Call& call) {
  check_matrices(call), check_square(call, 0), check_floating(call);
  auto sizes = call.operand_sizes[0];
  sizes.pop_back();
  return {{sizes, {}, complex_of(call.operand_dtypes[0])}};
}

std::vector<ResultShape> eigenvectors(const Call& call) {
  auto shapes = eigenvalues(call);
  shapes.push_back(by_columns(call.operand_sizes[0], shapes[0].dtype));
  return shapes;
}

/// The right side is a matrix, or a vector for each matrix of the batch.
OpSharding solved(const Call& call) {
  const auto &left = call.operand_sizes[0], &right = call.operand_sizes[1];
  const std::vector<int64_t> rows(left.begin(), left.end() - 1);
  const bool vector = right.size() == 1 || right == rows;
  return parse_op_sharding(vector ? "...AB,...A->...A,...AB,...A,..." : "...AB,...AC->...AC,...AB,...A,...",
                           call.operand_sizes, call.result_sizes());
}

/// LibTorch takes a right side of more matrices, and reads beyond the pivots then (2.11).
OpSharding solved_by_pivots(const Call& call) {
  const auto &left = call.operand_sizes[0], &right = call.operand_sizes[2];
  const bool same =
      left.size() == right.size() && left.size() >= 2 && std::equal(left.begin(), left.end() - 2, right.begin());
  if (!same)
    fail<BadInput>("{}: a right side of sizes {} for matrices of sizes {}; expand the matrices", call.op,
                   c10::str(c10::IntArrayRef(right)), c10::str(c10::IntArrayRef(left)));
  return parse_op_sharding("...AB,...A,...AC->...AC", call.operand_sizes, call.result_sizes());
}

std::vector<ResultShape> scalar_of_vectors(const Call& call) {
  for (const auto& sizes : call.operand_sizes)
    if (sizes.size() != 1 || sizes != call.operand_sizes[0])
      fail<BadInput>("{}: two vectors of one size are needed, not {}", call.op, c10::str(c10::IntArrayRef(sizes)));
  if (call.operand_dtypes[0] != call.operand_dtypes[1])
    fail<BadInput>("{}: the operands' dtypes differ, {} and {}", call.op, c10::toString(call.operand_dtypes[0]),
                   c10::toString(call.operand_dtypes[1]));
  return {{{}, {}, call.operand_dtypes[0]}};
}

std::vector<ResultShape> trace_shape(const Call& call) {
  if (call.dims(0) != 2) fail<BadInput>("trace: a matrix is needed, not {} dimensions", call.dims(0));
  return {{{}, {}, c10::isIntegralType(call.operand_dtypes[0], true) ? c10::kLong : call.operand_dtypes[0]}};
}

std::vector<ResultShape> matrix_by_vector(const Call& call) {
  if (call.dims(0) != 2 || call.dims(1) != 1 || call.operand_sizes[0][1] != call.operand_sizes[1][0])
    fail<BadInput>("mv: sizes {} and {} do not fit", c10::str(c10::IntArrayRef(call.operand_sizes[0])),
                   c10::str(c10::IntArrayRef(call.operand_sizes[1])));
  if (call.operand_dtypes[0] != call.operand_dtypes[1])
    fail<BadInput>("mv: the operands' dtypes differ, {} and {}", c10::toString(call.operand_dtypes[0]),
                   c10::toString(call.operand_dtypes[1]));
  return {{{call.operand_sizes[0][0]}, {}, call.operand_dtypes[0]}};
}

/// The summand is broadcast to the product.
OpSharding with_summand(const Call& call, const std::string& product) {
  const auto& result = call.results[0].sizes;
  auto sharding = parse_op_sharding(product, {call.operand_sizes[1], call.operand_sizes[2]}, call.result_sizes());
  const auto& summand = call.operand_sizes[0];
  OpShardingDims dims(summand.size(), OpShardingDim{});
  for (size_t d = 0; d < summand.size(); ++d) {
    const size_t at = result.size() - summand.size() + d;
    if (summand[d] == result[at]) dims[d] = sharding.results[0][at];
  }
  sharding.operands.insert(sharding.operands.begin(), dims);
  return sharding;
}

void check_summand(const Call& call, const std::vector<int64_t>& product) {
  if (!at::is_expandable_to(call.operand_sizes[0], product))
    fail<BadInput>("{}: a summand of sizes {} cannot be broadcast to the product's, {}", call.op,
                   c10::str(c10::IntArrayRef(call.operand_sizes[0])), c10::str(c10::IntArrayRef(product)));
}

OpSharding baddbmm_sharding(const Call& call) {
  const auto &left = call.operand_sizes[1], &right = call.operand_sizes[2];
  check_summand(call, {left[0], left[1], right[2]});
  return with_summand(call, "bmk,bkn->bmn");
}

/// LibTorch broadcasts the summand, but where it is written.
std::vector<ResultShape> summed_products(const Call& call) {
  const auto &left = call.sizes_of("batch1"), &right = call.sizes_of("batch2");
  if (left.size() != 3 || right.size() != 3 || left[0] != right[0] || left[2] != right[1])
    fail<BadInput>("{}: sizes {} and {} do not fit", call.op, c10::str(c10::IntArrayRef(left)),
                   c10::str(c10::IntArrayRef(right)));
  for (const auto dtype : call.operand_dtypes)
    if (dtype != call.operand_dtypes[0])
      fail<BadInput>("{}: the operands' dtypes differ, {} and {}", call.op, c10::toString(call.operand_dtypes[0]),
                     c10::toString(dtype));
  const std::vector<int64_t> sizes{left[1], right[2]};
  const bool writes = call.schema.arguments()[0].alias_info() != nullptr;
  check_summand(call, sizes);
  if (writes && call.operand_sizes[0] != sizes)
    fail<BadInput>("{}: the sum of products has sizes {}, what is written {}", call.op,
                   c10::str(c10::IntArrayRef(sizes)), c10::str(c10::IntArrayRef(call.operand_sizes[0])));
  return {{sizes, {}, call.operand_dtypes[0]}};
}

OpSharding addbmm_sharding(const Call& call) { return with_summand(call, "bmk,bkn->mn"); }

OpSharding addmv_sharding(const Call& call) {
  check_summand(call, {call.operand_sizes[1][0]});
  if (call.operand_sizes[1][0] == 0 && call.operand_sizes[0] != std::vector<int64_t>{0})
    fail<BadInput>("{}: LibTorch does not broadcast a summand to no rows", call.op);
  return with_summand(call, "mk,k->m");
}

constexpr Rule kRows[] = {
    batched("_linalg_det", "...AB->...,...AB,...A"),
    batched("_linalg_eigh", "...AB->...A,...AB"),
    batched("_linalg_eigvals", "...AB->...A", eigenvalues),
    batched("_linalg_slogdet", "...AB->...,...,...AB,...A"),
    {"_linalg_solve_ex", "linear algebra", "all but the matrices", "-", Rule::kPlain, solved, nullptr,
     local_unless_empty},
    batched("_linalg_svd", "...AB->...AB,...A,...AB"),
    {"addbmm", "matmul", "...,bmk,bkn->mn", "aee", Rule::kNoReduce, addbmm_sharding, summed_products,
     local_unless_empty},
    {"addmv", "matmul", "...,mk,k->m", "aee", Rule::kNoReduce, addmv_sharding, nullptr, local_unless_empty},
    {"baddbmm", "matmul", "...,bmk,bkn->bmn", "aee", Rule::kNoReduce, baddbmm_sharding, nullptr, local_unless_empty},
    {"dot", "matmul", "k,k->", "ee", Rule::kPlain, nullptr, scalar_of_vectors},
    {"linalg_cross", "linear algebra", "all but dim", "-", Rule::kPlain, all_but_named, nullptr, local_unless_empty},
    batched("linalg_cholesky_ex", "...AB->...AB,..."),
    batched("linalg_eig", "...AB->...A,...AB", eigenvectors),
    batched("linalg_inv_ex", "...AB->...AB,..."),
    batched("linalg_ldl_factor_ex", "...AB->...AB,...A,..."),
    {"linalg_ldl_solve", "linear algebra", "...AB,...A,...AC->...AC", "-", Rule::kPlain, solved_by_pivots, nullptr,
     local_unless_empty},
    batched("linalg_lu", "...AB->...AB,...AB,...AB"),
    batched("linalg_lu_factor_ex", "...AB->...AB,...A,..."),
    batched("linalg_lu_solve", "...AB,...A,...AC->...AC"),
    batched("linalg_matrix_exp", "...AB->...AB", square_like),
    batched("linalg_qr", "...AB->...AC,...CB"),
    {"mv", "matmul", "mk,k->m", "ee", Rule::kPlain, nullptr, matrix_by_vector},
    {"trace", "linear algebra", "AB->", "-", Rule::kPlain, nullptr, trace_shape},
    batched("triangular_solve", "...AB,...AC->...AB,...AC"),
    batched("tril", "...AB->...AB"),
    batched("triu", "...AB->...AB"),
    {"vdot", "matmul", "k,k->", "ee", Rule::kPlain, nullptr, scalar_of_vectors},
};

}  // namespace

std::span<const Rule> matrices() { return kRows; }

}  // namespace lockstep::rules
