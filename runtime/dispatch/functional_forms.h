#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Every overload of LibTorch's that takes or gives a tensor, by name.
const std::vector<c10::OperatorHandle>& tensor_ops();

/// Whether the op gives its results in tensors that its caller names last: "add.out", "max.dim_max".
bool is_out_form(const c10::FunctionSchema& schema);

/// Whether the op writes its operands: "add_.Tensor", "_foreach_add_.Scalar".
bool is_in_place_form(const c10::FunctionSchema& schema);

/// The overload with the same arguments but for those that an out form writes: "sum.dim_IntList" of "sum.IntList_out".
/// It may have arguments of its own that say what the tensors written say by themselves: dtype, layout and device.
std::optional<c10::OperatorHandle> functional_of_out(const c10::OperatorHandle& out);

}  // namespace lockstep
