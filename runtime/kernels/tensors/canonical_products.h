#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "runtime/kernels/products/product_plan.h"

/// Matrix products of canonical numerics on plain CPU tensors (float, double, bfloat16): the bits of an element depend
/// on the values it is made of and on the size of the label that is summed over, on nothing else. LibTorch's thread
/// count says how many threads share the work.
namespace lockstep::kernels {

/// Which part of the summed label is in the operands: `first` of `total`, in units of elements or samples. By default
/// all of it.
struct ContractedRange {
  int64_t first = 0, total = -1;
  int64_t rounded_levels = 0;  ///< of a sum over elements: RoundedLevels, to the dtype of the operands

  /// A sum that stays open is given as nodes, also where all of it is here.
  bool stays_open() const { return total >= 0; }
  Contraction elements(int64_t here) const {
    auto contraction = Contraction::over(total < 0 ? here : total, first, here);
    contraction.open_levels = rounded_levels;
    return contraction;
  }
};

/// a [..., m, k], b [..., k, n], leading dimensions broadcast -> [..., m, n] in the dtype of the operands. With a
/// range: its nodes (cover()), [nodes, ..., m, n], in float for bfloat16 operands unless all of them are rounded.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, const ContractedRange& range = {});

/// input [..., k], weight [n, k] -> [..., n]; the bias is added last, in the wide dtype and before anything is rounded.
/// With a range: nodes [nodes, ..., n], and no bias.
at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias = {},
                  const ContractedRange& range = {});

/// left [r, m], right [r, n] -> into out [nodes, m, n], the plan's nodes of the sum over r; a node without a group
/// stays as it is. In the dtype that nodes have.
void sum_outer_products(const at::Tensor& left, const at::Tensor& right, const ProductPlan& plan,
                        const at::Tensor& out);

/// Nodes of such sums, not filled, in the dtype that nodes have for factors like `like`.
at::Tensor empty_nodes(const Contraction& contraction, std::vector<int64_t> sizes, const at::Tensor& like);

/// gradient [b, ..., n], input [b, ..., k] -> [n, k], the sum over samples b of sums over all positions of a sample.
/// `samples` says which; where they are not all: nodes [nodes, n, k], in float for bfloat16 operands.
at::Tensor weight_gradient(const at::Tensor& gradient, const at::Tensor& input, const ContractedRange& samples);

}  // namespace lockstep::kernels
