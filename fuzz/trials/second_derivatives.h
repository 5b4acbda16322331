#pragma once
#include <string>

namespace lockstep::testing {

/// Whether LibTorch itself has no derivative of the op's derivative: then the mesh has to have none, either.
bool has_no_second_derivative(const std::string& op);

/// A part of the message with which a mesh may refuse the op's second derivative although LibTorch has one; or null.
const char* refused_second_derivative(const std::string& op);

}  // namespace lockstep::testing
