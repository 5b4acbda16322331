// Contractions. Linear in each factor; a bias is a summand, Partial whenever the contraction is.
#include "core/error.h"
#include "runtime/rule_set.h"

namespace lockstep::rules {
namespace {

/// Batch dimensions broadcast, then "mk,kn->mn"; one-dimensional operands have no m or n.
Form matmul_form(const Call& call) {
  const bool row = call.dims(0) == 1, column = call.dims(1) == 1;
  const std::string dims = std::string(row ? "k" : "...mk") + "," + (column ? "k" : "...kn") + "->" +
                           (row ? (column ? "" : "...") : "...m") + (column ? "" : "n");
  const bool leading_only_left = !row && column;
  return parse_form(leading_only_left ? "...mk,k->...m" : dims, call.operand_sizes, call.result_sizes());
}

std::vector<ResultShape> linear_shape(const Call& call) {
  auto sizes = call.operand_sizes[0];
  sizes.back() = call.operand_sizes[1][0];
  return {{sizes, {}, call.operand_dtypes[0]}};
}

std::vector<ResultShape> weight_gradient_shape(const Call& call) {
  return {{{call.operand_sizes[0].back(), call.operand_sizes[1].back()}, {}, call.operand_dtypes[0]}};
}

constexpr Rule kRows[] = {
    {"addmm", "matmul", "...n,mk,kn->mn", "aee"},
    {"bmm", "matmul", "bmk,bkn->bmn", "ee"},
    {"linear", "matmul", "...k,nk,n->...n", "eea", Rule::kPlain, nullptr, linear_shape},
    {"matmul", "matmul", "...mk,...kn->...mn", "ee", Rule::kPlain, matmul_form},
    {"mesh::weight_gradient", "matmul", "...n,...k->nk", "ee", Rule::kPlain, nullptr, weight_gradient_shape},
    {"mm", "matmul", "mk,kn->mn", "ee"},
};

}  // namespace

std::span<const Rule> matmul() { return kRows; }

}  // namespace lockstep::rules
