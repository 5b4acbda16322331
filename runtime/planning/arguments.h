#pragma once
#include <ATen/core/function_schema.h>

#include <string_view>

namespace lockstep {

/// Where the schema has the argument of that name ("dim", "keepdim", "alpha"). Throws InternalError if it has none.
size_t argument_number(const c10::FunctionSchema& schema, std::string_view name);

/// Whether it has one: the forms of an op differ.
bool has_argument(const c10::FunctionSchema& schema, std::string_view name);

}  // namespace lockstep
