#include "runtime/kernels/experts/expert_products.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/range.h"
#include "runtime/kernels/products/product_plan.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

/// Which rows are of which expert, those of one sample after the other.
class RowsByExpert {
 public:
  explicit RowsByExpert(const Tensor& present) : samples_(present.size(0)), counts_(present.sum({2}).cpu()) {
    first_ = (counts_.flatten().cumsum(0, c10::kLong) - counts_.flatten()).view_as(counts_);
  }

  /// A view where they lie together.
  Tensor of(const Tensor& rows, int64_t expert, int64_t dim = 0) const {
    if (samples_ == 1) return rows.narrow(dim, number(first_, 0, expert), number(counts_, 0, expert));
    std::vector<Tensor> parts;
    for (int64_t s = 0; s < samples_; ++s)
      parts.push_back(rows.narrow(dim, number(first_, s, expert), number(counts_, s, expert)));
    return parts.empty() ? rows.narrow(dim, 0, 0) : at::cat(parts, dim);
  }
  Tensor of_sample(const Tensor& rows, int64_t sample, int64_t expert) const {
    return rows.narrow(0, number(first_, sample, expert), number(counts_, sample, expert));
  }
  void put(const Tensor& into, int64_t expert, const Tensor& rows, int64_t dim) const {
    int64_t done = 0;
    for (int64_t s = 0; s < samples_; ++s) {
      const int64_t count = number(counts_, s, expert);
      into.narrow(dim, number(first_, s, expert), count).copy_(rows.narrow(dim, done, count));
      done += count;
    }
  }

 private:
  static int64_t number(const Tensor& table, int64_t sample, int64_t expert) {
    return table.const_data_ptr<int64_t>()[sample * table.size(1) + expert];
  }

  int64_t samples_;
  Tensor counts_, first_;
};

/// Of rows of the batch, whose positions are counted on.
std::vector<int64_t> positions_of(const Tensor& present, const Range& rows, int64_t expert) {
  const auto cells = present.narrow(0, rows.start, rows.length).select(1, expert).flatten().contiguous();
  const bool* is_present = cells.const_data_ptr<bool>();
  std::vector<int64_t> positions;
  for (int64_t l = 0; l < cells.size(0); ++l)
    if (is_present[l]) positions.push_back(l);
  return positions;
}

Tensor given(const Tensor& nodes, const ContractedRange& range, const Tensor& like) {
  return range.stays_open() ? nodes : nodes.select(0, 0).to(like.scalar_type());
}

}  // namespace

Tensor expert_linear(const Tensor& rows, const Tensor& present, const Tensor& weight) {
  const RowsByExpert by_expert(present);
  auto result = at::empty({rows.size(0), weight.size(1)}, rows.options());
  for (int64_t e = 0; e < weight.size(0); ++e)
    by_expert.put(result, e, at::linear(by_expert.of(rows, e), weight.select(0, e)), 0);
  return result;
}

Tensor expert_weight_gradient(const Tensor& gradient, const Tensor& rows, const Tensor& present) {
  const RowsByExpert by_expert(present);
  std::vector<Tensor> all;
  for (int64_t e = 0; e < present.size(1); ++e)
    all.push_back(at::mm(by_expert.of(gradient, e).t(), by_expert.of(rows, e)));
  return all.empty() ? at::zeros({0, gradient.size(1), rows.size(1)}, rows.options()) : at::stack(all);
}

Tensor canonical_expert_linear(const Tensor& rows, const Tensor& present, const Tensor& weight,
                               const ContractedRange& range) {
  const RowsByExpert by_expert(present);
  const auto none = linear(rows.narrow(0, 0, 0), weight.new_empty({weight.size(1), weight.size(2)}), {}, range);
  auto sizes = none.sizes().vec();
  sizes[sizes.size() - 2] = rows.size(0);
  auto result = at::empty(sizes, none.options());
  for (int64_t e = 0; e < weight.size(0); ++e)
    by_expert.put(result, e, linear(by_expert.of(rows, e), weight.select(0, e), {}, range), range.stays_open() ? 1 : 0);
  return result;
}

Tensor canonical_expert_weight_gradient(const Tensor& gradient, const Tensor& rows, const Tensor& present,
                                        int64_t rows_of_sample, const ContractedRange& samples) {
  const int64_t here = present.size(0) / rows_of_sample, experts = present.size(1);
  const int64_t length = rows_of_sample * present.size(2);
  const RowsByExpert by_expert(present);
  const auto contraction =
      Contraction::over_samples(samples.total < 0 ? here : samples.total, samples.first, here, length);
  const auto nodes = empty_nodes(contraction, {experts, gradient.size(1), rows.size(1)}, gradient).zero_();
  for (int64_t e = 0; e < experts; ++e) {
    PresentElements positions;
    for (int64_t s = 0; s < here; ++s)
      positions.push_back(positions_of(present, {s * rows_of_sample, rows_of_sample}, e));
    sum_outer_products(by_expert.of(gradient, e), by_expert.of(rows, e),
                       plan_product(contraction, kGroupLimit, positions), nodes.select(1, e));
  }
  return given(nodes, samples, gradient);
}

Tensor canonical_sample_weight_gradient(const Tensor& gradient, const Tensor& rows, const Tensor& present,
                                        const ContractedRange& range) {
  const RowsByExpert by_expert(present);
  const auto contraction = range.elements(present.size(2));
  const auto nodes =
      empty_nodes(contraction, {present.size(0), present.size(1), gradient.size(1), rows.size(1)}, gradient).zero_();
  for (int64_t s = 0; s < present.size(0); ++s)
    for (int64_t e = 0; e < present.size(1); ++e) {
      auto positions = positions_of(present, {s, 1}, e);
      for (auto& position : positions) position += contraction.first_element;
      sum_outer_products(by_expert.of_sample(gradient, s, e), by_expert.of_sample(rows, s, e),
                         plan_product(contraction, kGroupLimit, {std::move(positions)}),
                         nodes.select(1, s).select(1, e));
    }
  return given(nodes, range, gradient);
}

}  // namespace lockstep::kernels
