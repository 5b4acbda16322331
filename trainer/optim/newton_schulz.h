#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::trainer {

/// The matrix of nearly orthonormal rows or columns that is near `matrix` [m, n]: U V^T of its singular value
/// decomposition with singular values of about 1 (0.7 to 1.2), by five steps of Newton and Schulz (Jordan et al.,
/// "Muon", 2024): X = matrix / (its Frobenius norm + 1e-7), then five times
///   A = X X^T;  X = 3.4445 X + (-4.7750 A + 2.0315 A A) X
/// of the transposed matrix where m > n, in the matrix's dtype. Products and the norm are ops of the table: of a matrix
/// that every rank holds whole, the same bits on every mesh.
at::Tensor orthogonalised(const at::Tensor& matrix);

}  // namespace lockstep::trainer
