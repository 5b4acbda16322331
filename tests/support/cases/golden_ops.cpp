// Sums, products and attention.
#include "tests/support/cases/golden_ops.h"

#include <ATen/Functions.h>

#include "runtime/context/scopes.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::testing {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Sizes = std::vector<int64_t>;

/// One leaf, two, leaves that are not full, and more elements than leaves of 32 hold.
const Sizes kSummands = {0, 1, 31, 32, 63, 64, 65, 1000, 4097};
const Sizes kContracted = {1, 31, 32, 63, 64, 65, 300, 1000};
/// Less than a vector, a tile of keys, more than the 256 keys that share a maximum.
const Sizes kLengths = {9, 65, 300};

/// Everything that attention gives, from its gradient, query, key and value.
Tensors attention_of(const Tensors& x, bool causal) {
  const auto [output, log_sum] = mesh_ops::attention(x[1], x[2], x[3], causal, 0.25);
  const auto [dq, dk, dv] = mesh_ops::attention_backward(x[0], x[1], x[2], x[3], output, log_sum, causal, 0.25);
  return {output, log_sum, dq, dk, dv};
}

/// A tensor that all ranks have, beside `like`.
Tensor everywhere(const Tensor& x, const Tensor& like) {
  return is_sharded(like) ? distribute(x, Layout::replicated(layout_of(like).mesh())) : x;
}

/// Rows of all elements of the matrix of weights, from any element of stream 11 under seed 7 on.
mesh_ops::Dropout some_dropout(const Tensor& query) {
  const int64_t rows = query.size(0) * query.size(1) * query.size(2);
  const auto first = at::arange(rows, at::kLong) * 331 + 1000;
  const auto draws = at::stack({at::full_like(first, 7), at::full_like(first, 11), first}, 1);
  return {everywhere(draws.view({query.size(0), query.size(1), query.size(2), 3}), query), 0.3};
}

/// The same inside of documents of 7 and 60 tokens in turn, the first of which began before.
Tensors document_attention_of(const Tensors& x, const mesh_ops::Dropout& dropout = {}) {
  std::vector<int64_t> places;
  for (int64_t i = 0, place = 3; i < x[1].size(0) * x[1].size(2); ++i, ++place) {
    if (i % 67 == 7 || i % 67 == 0) place = i == 0 ? 3 : 0;
    places.push_back(place);
  }
  const auto of_rows = everywhere(at::tensor(places, at::kLong).view({x[1].size(0), x[1].size(2)}), x[1]);
  const auto [output, log_sum] = mesh_ops::document_attention(x[1], x[2], x[3], of_rows, dropout, 0.25);
  const auto [dq, dk, dv] =
      mesh_ops::document_attention_backward(x[0], x[1], x[2], x[3], output, log_sum, of_rows, dropout, 0.25);
  return {output, log_sum, dq, dk, dv};
}

}  // namespace

std::vector<GoldenOp> golden_sums() {
  return {
      {.name = "sums.of_elements",
       .widths = kSummands,
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{3, n}};
           },
       .run = [](const Tensors& x) { return Tensors{at::sum(x[0], {1})}; },
       .by_width = true},
      {.name = "sums.of_samples",
       .widths = kSummands,
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{n, 3}};
           },
       .run =
           [](const Tensors& x) {
             const BatchScope batch({.count = x[0].size(0)});
             return Tensors{at::sum(x[0], {0})};
           },
       .by_width = true},
      {.name = "sums.of_all",
       .widths = kSummands,
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{3, n, 2}};
           },
       .run = [](const Tensors& x) { return Tensors{at::sum(x[0])}; },
       .by_width = true},
      {.name = "sums.mean",
       .widths = {1, 65, 1000},
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{3, n}};
           },
       .run =
           [](const Tensors& x) {
             return Tensors{at::mean(x[0]), at::mean(x[0], {1})};
           }},
  };
}

std::vector<GoldenOp> golden_products() {
  const auto mm_sizes = [](int64_t k) { return std::vector<Sizes>{{33, k}, {k, 50}}; };
  const auto mm = [](const Tensors& x) { return Tensors{at::mm(x[0], x[1])}; };
  const auto linear_sizes = [](int64_t k) { return std::vector<Sizes>{{2, 3, k}, {9, k}, {9}}; };
  return {
      {.name = "products.mm", .widths = kContracted, .operands = mm_sizes, .run = mm},
      {.name = "products.mm_with_1_rounded_level",
       .widths = kContracted,
       .operands = mm_sizes,
       .run = mm,
       .dtypes = GoldenOp::kNarrow,
       .rounded_levels = 1},
      {.name = "products.mm_with_3_rounded_levels",
       .widths = kContracted,
       .operands = mm_sizes,
       .run = mm,
       .dtypes = GoldenOp::kNarrow,
       .rounded_levels = 3},
      {.name = "products.bmm",
       .widths = kContracted,
       .operands =
           [](int64_t k) {
             return std::vector<Sizes>{{3, 5, k}, {3, k, 7}};
           },
       .run = [](const Tensors& x) { return Tensors{at::bmm(x[0], x[1])}; }},
      {.name = "products.addmm",
       .widths = kContracted,
       .operands =
           [](int64_t k) {
             return std::vector<Sizes>{{7}, {5, k}, {k, 7}};
           },
       .run = [](const Tensors& x) { return Tensors{at::addmm(x[0], x[1], x[2], 0.5, 3)}; }},
      {.name = "products.linear",
       .widths = kContracted,
       .operands = linear_sizes,
       .run = [](const Tensors& x) { return Tensors{at::linear(x[0], x[1], x[2])}; }},
      {.name = "products.linear_with_2_rounded_levels",
       .widths = kContracted,
       .operands = linear_sizes,
       .run = [](const Tensors& x) { return Tensors{at::linear(x[0], x[1])}; },
       .dtypes = GoldenOp::kNarrow,
       .rounded_levels = 2},
      {.name = "products.weight_gradient_of_samples",
       .widths = kContracted,
       .operands =
           [](int64_t k) {
             return std::vector<Sizes>{{5, k, 7}, {5, k, 6}};
           },
       .run = [](const Tensors& x) { return Tensors{mesh_ops::weight_gradient(x[0], x[1])}; }},
      {.name = "products.weight_gradient_of_rows",
       .widths = kContracted,
       .operands =
           [](int64_t k) {
             return std::vector<Sizes>{{k, 7}, {k, 6}};
           },
       .run = [](const Tensors& x) { return Tensors{mesh_ops::weight_gradient(x[0], x[1])}; }},
  };
}

/// Two query heads for each of key and value.
std::vector<GoldenOp> golden_attention() {
  return {
      {.name = "attention.causal",
       .widths = kLengths,
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{2, 4, n, 8}, {2, 4, n, 8}, {2, 2, n, 8}, {2, 2, n, 8}};
           },
       .run = [](const Tensors& x) { return attention_of(x, true); }},
      {.name = "attention.of_all_keys",
       .widths = kLengths,
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{2, 4, n, 8}, {2, 4, n, 8}, {2, 2, n + 5, 8}, {2, 2, n + 5, 8}};
           },
       .run = [](const Tensors& x) { return attention_of(x, false); }},
      {.name = "attention.in_documents",
       .widths = kLengths,
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{2, 4, n, 8}, {2, 4, n, 8}, {2, 2, n, 8}, {2, 2, n, 8}};
           },
       .run = [](const Tensors& x) { return document_attention_of(x); }},
      {.name = "attention.with_dropout",
       .widths = kLengths,
       .operands =
           [](int64_t n) {
             return std::vector<Sizes>{{2, 4, n, 8}, {2, 4, n, 8}, {2, 2, n, 8}, {2, 2, n, 8}};
           },
       .run = [](const Tensors& x) { return document_attention_of(x, some_dropout(x[1])); }},
  };
}

}  // namespace lockstep::testing
