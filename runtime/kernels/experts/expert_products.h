#pragma once
#include <ATen/core/Tensor.h>

#include "runtime/kernels/tensors/canonical_products.h"

/// Products of experts' rows (expert_rows.h), each with the matrix of its expert. `present`, bool [b, e, l].
namespace lockstep::kernels {

/// rows [n, i], weight [e, o, i] -> [n, o]. LibTorch's products.
at::Tensor expert_linear(const at::Tensor& rows, const at::Tensor& present, const at::Tensor& weight);

/// gradient [n, o], rows [n, i] -> [e, o, i]: the sum over an expert's rows of outer products. LibTorch's products.
at::Tensor expert_weight_gradient(const at::Tensor& gradient, const at::Tensor& rows, const at::Tensor& present);

// Canonical numerics, on CPUs: the bits of linear() for each row, and of weight_gradient() for rows that are 0 where
// none is present.

/// With a range: nodes [nodes, n, o].
at::Tensor canonical_expert_linear(const at::Tensor& rows, const at::Tensor& present, const at::Tensor& weight,
                                   const ContractedRange& range);

/// The sum over samples, so many rows of the batch each, of sums over all positions of a sample -> [e, o, i]; where it
/// stays open nodes [nodes, e, o, i].
at::Tensor canonical_expert_weight_gradient(const at::Tensor& gradient, const at::Tensor& rows,
                                            const at::Tensor& present, int64_t rows_of_sample,
                                            const ContractedRange& samples);

/// The same of each sample, of whose positions these are the range -> nodes [nodes, b, e, o, i], or [b, e, o, i].
at::Tensor canonical_sample_weight_gradient(const at::Tensor& gradient, const at::Tensor& rows,
                                            const at::Tensor& present, const ContractedRange& positions);

}  // namespace lockstep::kernels
