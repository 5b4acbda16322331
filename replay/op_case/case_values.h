#pragma once
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <span>

#include "replay/format/recording.h"

/// What the values in a case must be before LibTorch sees them: it checks sizes and types, but it believes numbers that
/// stand for something.
namespace lockstep::replay {

/// Integers that stand for a dtype, a layout or a memory format are ones. Throws BadInput naming the argument.
void require_enumerations(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments);

/// A dtype that a recording may hold. Throws BadInput; `what` is whose it is.
c10::ScalarType dtype_of(int64_t number, const std::string& what);

/// Sizes of a tensor: none negative, and no more than 2^40 elements were each empty dimension of size 1. Throws
/// BadInput.
void require_sizes(std::span<const int64_t> sizes, const std::string& what);

}  // namespace lockstep::replay
