#pragma once
#include <ATen/core/Tensor.h>

#include "core/range.h"
#include "runtime/tensor/shard_set.h"
#include "runtime/tensor/spec.h"

/// Packed rows (Packing) as plain tensors: `present`, bool, says of each cell whether it has a row, and the n-th row is
/// that of the n-th present cell, in the order of the cells.
namespace lockstep {

/// The numbers of the rows, int64 [n], whose cells lie in `wanted` of dimension `dim` of the cells, which begins at
/// `first` here.
at::Tensor rows_of_cells(const at::Tensor& present, int64_t dim, int64_t first, const Range& wanted);

/// How many rows those are.
int64_t count_of_rows(const at::Tensor& present, int64_t dim, int64_t first, const Range& wanted);

/// rows [n, ...] of the present cells -> [cells..., ...], 0 where none is; with `nodes`, rows [nodes, n, ...] ->
/// [nodes, cells..., ...].
at::Tensor unpacked(const at::Tensor& rows, const at::Tensor& present, bool nodes = false);

/// The inverse: [cells..., ...] -> [n, ...].
at::Tensor packed(const at::Tensor& whole, const at::Tensor& present, bool nodes = false);

/// Of each local rank the same cells.
bool same_cells(const Shards& left, const Shards& right);

/// Of local rank `index`, the sizes of a shard of packed rows of these cells.
std::vector<int64_t> sizes_of_rows(const TensorSpec& spec, size_t index, const at::Tensor& present);

/// How the cells of packed rows lie on the mesh: bool [cells...], as the rows do but for sums and for what cuts rows.
const TensorSpec* spec_of_cells(const TensorSpec& spec);

/// Cuts rows that all processes have alike, [cells..., ...] and which cells are present, into a tensor of packed rows.
/// No communication. The layout has no Partial axis.
at::Tensor distribute_rows(const at::Tensor& whole, const at::Tensor& present, const Layout& layout);
/// Declared as of that dtype.
at::Tensor distribute_rows(const at::Tensor& whole, const at::Tensor& present, const Layout& layout,
                           c10::ScalarType dtype);

}  // namespace lockstep
