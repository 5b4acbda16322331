// Contractions. Linear in each factor; a bias is a summand, Partial whenever the contraction is.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/canonical/leave_result.h"

namespace lockstep::rules {
namespace {

/// Batch dimensions broadcast, then "mk,kn->mn"; one-dimensional operands have no m or n.
OpSharding matmul_sharding(const Call& call) {
  const bool row = call.dims(0) == 1, column = call.dims(1) == 1;
  const std::string dims = std::string(row ? "k" : "...mk") + "," + (column ? "k" : "...kn") + "->" +
                           (row ? (column ? "" : "...") : "...m") + (column ? "" : "n");
  const bool leading_only_left = !row && column;
  return parse_op_sharding(leading_only_left ? "...mk,k->...m" : dims, call.operand_sizes, call.result_sizes());
}

/// LibTorch has no meta kernel for the product of two vectors, so its sizes are put together here.
std::vector<ResultShape> matmul_shape(const Call& call) {
  auto left = call.sizes_of("self"), right = call.sizes_of("other");
  if (left.empty() || right.empty()) fail<BadInput>("matmul: both operands should have a dimension at least, not 0");
  const int64_t rows = right[right.size() - std::min<size_t>(right.size(), 2)];
  if (left.back() != rows)
    fail<BadInput>("matmul: the left operand's last dimension has {} elements, the right one has {} rows", left.back(),
                   rows);
  const auto dtype = call.dtype_of("self"), other = call.dtype_of("other");
  if (dtype != other)
    fail<BadInput>("matmul: the operands' dtypes differ, {} and {}", c10::toString(dtype), c10::toString(other));
  std::vector<int64_t> last;
  if (left.size() > 1) last.push_back(left[left.size() - 2]);
  if (right.size() > 1) last.push_back(right.back());
  left.resize(left.size() - std::min<size_t>(left.size(), 2));
  right.resize(right.size() - std::min<size_t>(right.size(), 2));
  auto sizes = at::infer_size(left, right);
  sizes.insert(sizes.end(), last.begin(), last.end());
  return {{sizes, {}, dtype}};
}

/// LibTorch's meta kernel takes any bias.
void check_bias(const Call& call) {
  const auto& bias = call.sizes_of("self");
  const std::vector<int64_t> product{call.sizes_of("mat1")[0], call.sizes_of("mat2")[1]};
  bool fits = bias.size() <= 2;
  for (size_t d = 0; fits && d < bias.size(); ++d)
    fits = bias[d] == 1 || bias[d] == product[product.size() - bias.size() + d];
  if (!fits)
    fail<BadInput>("{}: a bias of sizes {} cannot be broadcast to the product's, {}", call.op,
                   c10::str(c10::IntArrayRef(bias)), c10::str(c10::IntArrayRef(product)));
}

/// The bias is broadcast to the product.
OpSharding addmm_sharding(const Call& call) {
  constexpr const char* kDims[] = {",mk,kn->mn", "n,mk,kn->mn", "mn,mk,kn->mn"};
  check_bias(call);
  return parse_op_sharding(kDims[call.dims(0)], call.operand_sizes, call.result_sizes());
}

/// A Partial bias in 16 bits is held in fp32, which the fused kernels do not mix with 16-bit factors: it is added
/// apart.
void local_linear(const LocalCall& call, torch::jit::Stack& stack) {
  const auto input = call.tensor(stack, "input"), weight = call.tensor(stack, "weight");
  const auto given = call.argument(stack, "bias");
  if (given.isNone() || given.toTensor().scalar_type() == input.scalar_type()) return call.op.callBoxed(stack);
  const auto& bias = given.toTensor();
  stack = {at::linear(input, weight).to(bias.scalar_type()).add_(bias)};
}

void local_addmm(const LocalCall& call, torch::jit::Stack& stack) {
  const auto bias = call.tensor(stack, "self"), left = call.tensor(stack, "mat1"), right = call.tensor(stack, "mat2");
  if (bias.scalar_type() == left.scalar_type()) return call.op.callBoxed(stack);
  const auto beta = call.argument(stack, "beta").toScalar(), alpha = call.argument(stack, "alpha").toScalar();
  const auto sum = at::mm(left, right).to(bias.scalar_type()).mul_(alpha).add_(bias, beta);
  leave_result(call, stack, bias, sum);
}

std::vector<ResultShape> linear_shape(const Call& call) {
  for (const auto dtype : call.operand_dtypes)
    if (dtype != call.operand_dtypes[0])
      fail<BadInput>("linear: the operands' dtypes differ, {} and {}", c10::toString(call.operand_dtypes[0]),
                     c10::toString(dtype));
  auto sizes = call.sizes_of("input");
  sizes.back() = call.sizes_of("weight")[0];
  return {{sizes, {}, call.operand_dtypes[0]}};
}

constexpr Rule kRows[] = {
    {"addmm", "matmul", "...,mk,kn->mn", "aee", Rule::kPlain, addmm_sharding, nullptr, local_addmm},
    {"bmm", "matmul", "bmk,bkn->bmn", "ee"},
    {"linear", "matmul", "...k,nk,n->...n", "eea", Rule::kPlain, nullptr, linear_shape, local_linear},
    {"matmul", "matmul", "...mk,...kn->...mn", "ee", Rule::kPlain, matmul_sharding, matmul_shape},
    {"mm", "matmul", "mk,kn->mn", "ee"},
};

}  // namespace

std::span<const Rule> matmul() { return kRows; }

}  // namespace lockstep::rules
