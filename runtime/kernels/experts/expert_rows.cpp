#include "runtime/kernels/experts/expert_rows.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

Tensor wide(const Tensor& x) { return x.scalar_type() == c10::kDouble ? x : x.to(c10::kFloat); }

/// Numbers of cells [b, l, k] of all choices, and which of them are of these experts.
struct Cells {
  Tensor number, is_here;
};

Cells cells_of(const Tensor& experts, int64_t first, int64_t count) {
  const int64_t samples = experts.size(0), length = experts.size(1);
  const auto here = experts - first;
  const auto is_here = here.ge(0).logical_and(here.lt(count)).logical_and(experts.ge(0));
  const auto sample = at::arange(samples, experts.options()).view({samples, 1, 1});
  const auto position = at::arange(length, experts.options()).view({1, length, 1});
  return {(sample * count + here) * length + position, is_here};
}

/// Of every choice the number of its row, and whether it has one.
Cells rows_of(const Tensor& present, const Tensor& experts) {
  auto cells = cells_of(experts, 0, present.size(1));
  const auto number = present.flatten().cumsum(0, c10::kLong) - 1;
  const auto cell = at::where(cells.is_here, cells.number, at::zeros_like(cells.number));
  const auto has_row = present.flatten().index_select(0, cell.flatten()).view_as(cell);
  const auto is_here = cells.is_here.logical_and(has_row);
  const auto row = number.index_select(0, cell.flatten()).view_as(cell);
  return {at::where(is_here, row, at::zeros_like(row)), is_here};
}

/// Of choice k of each token its row, [b, l, w]; 0 where it has none.
Tensor chosen(const Tensor& rows, const Cells& cells, int64_t k) {
  const auto number = cells.number.select(2, k), is_here = cells.is_here.select(2, k);
  const auto taken = rows.index_select(0, number.flatten()).view({number.size(0), number.size(1), rows.size(1)});
  return at::where(is_here.unsqueeze(2), taken, at::zeros({}, taken.options()));
}

}  // namespace

ExpertRows expert_rows(const Tensor& x, const Tensor& experts, const std::optional<Tensor>& weights, int64_t first,
                       int64_t count) {
  const int64_t samples = x.size(0), length = x.size(1), choices = experts.size(2);
  const auto cells = cells_of(experts, first, count);
  const auto number = cells.number.masked_select(cells.is_here);
  auto present = at::zeros({samples * count * length}, experts.options().dtype(c10::kBool));
  present.index_fill_(0, number, true);
  const auto rows = present.nonzero().squeeze(1);
  if (rows.size(0) != number.size(0)) fail<BadInput>("mesh::expert_rows: a token chose one expert twice");
  const auto token = rows.floor_divide(count * length) * length + rows.remainder(length);
  auto values = x.reshape({samples * length, x.size(2)}).index_select(0, token);
  if (weights) {
    const auto choice = at::arange(choices, experts.options()).expand_as(experts).masked_select(cells.is_here);
    const auto of_cell = at::zeros({present.size(0)}, experts.options()).index_copy(0, number, choice);
    const auto place = token * choices + of_cell.index_select(0, rows);
    values = (wide(values) * wide(weights->reshape({-1})).index_select(0, place).unsqueeze(1)).to(x.scalar_type());
  }
  return {values, present.view({samples, count, length})};
}

Tensor expert_sums(const Tensor& rows, const Tensor& present, const Tensor& experts,
                   const std::optional<Tensor>& weights) {
  const auto values = wide(rows);
  auto sum = at::zeros({experts.size(0), experts.size(1), rows.size(1)}, values.options());
  if (rows.size(0) == 0) return sum.to(rows.scalar_type());
  const auto cells = rows_of(present, experts);
  for (int64_t k = 0; k < experts.size(2); ++k) {
    auto term = chosen(values, cells, k);
    if (weights) term.mul_(wide(*weights).select(2, k).unsqueeze(2));
    sum.add_(term);
  }
  return sum.to(rows.scalar_type());
}

Tensor expert_factors(const Tensor& rows, const Tensor& present, const Tensor& x, const Tensor& experts) {
  const auto values = wide(rows), other = wide(x);
  auto result = at::zeros({x.size(0), x.size(1), experts.size(2), x.size(2)}, values.options());
  if (rows.size(0) == 0) return result;
  const auto cells = rows_of(present, experts);
  for (int64_t k = 0; k < experts.size(2); ++k) result.select(2, k).copy_(chosen(values, cells, k) * other);
  return result;
}

}  // namespace lockstep::kernels
