#pragma once
#include <ATen/core/Tensor.h>

#include <string_view>

#include "runtime/tensor/mesh.h"

/// What a program makes without an op, told to observers under an id of its own (ValueEvent). Without observers this
/// costs nothing; recordings have none of it.
namespace lockstep {

/// `value` is sharded; `module`: that it belongs to.
void tell_tensor(const at::Tensor& value, std::string_view name, std::string_view module);

/// The number itself, or what an observer that plants a fault makes of it.
double told_number(const Mesh& mesh, std::string_view name, double number);

}  // namespace lockstep
