#pragma once
#include <string>

#include "tools/lockstep/arguments.h"
#include "trainer/data/token_sidecar.h"

namespace lockstep::tool {

/// Copies the ids of a file of tokens that has no sidecar (options.inputs: nanoGPT's, llm.c's, or nothing but ids of
/// options.dtype) to `tokens`, and where its documents begin, behind each options.end_of_document, to `borders`, if
/// that is said. Gives the sidecar. BadInput for what is wrong with the file, FileError for what cannot be written.
trainer::TokenSidecar adopt(const DataOptions& options, const std::string& tokens, const std::string& borders);

}  // namespace lockstep::tool
