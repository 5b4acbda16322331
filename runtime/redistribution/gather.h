#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep {

/// The whole tensor as a plain one in its stored dtype (a copy); of packed rows, 0 where there is none. Communicates,
/// but is not counted as traffic. Throws BadInput where no rank of the tensor's mesh lives.
at::Tensor gather(const at::Tensor& tensor);

/// The same of tensors of one World, of equal sizes and dtypes: a GPU is waited for once.
std::vector<at::Tensor> gather_numbers(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep
