#pragma once
#include <span>
#include <string>
#include <vector>

#include "replay/format/recording.h"
#include "runtime/context/observer.h"

namespace lockstep::replay {

/// What a rank that lives here holds of an op's sharded operands, copied: "operand.NAME".
std::vector<RecordedTensor> operands_of(const OpEvent& event, int rank);

/// What it holds of what the op gave, copied: "result.0".
std::vector<RecordedTensor> results_of(const OpEvent& event, std::span<const c10::IValue> results, int rank);

/// Writes tensors for people to look at: FOLDER/op.h5 with one dataset each, and FOLDER/NAME.npy (NumPy's format,
/// version 1.0; bfloat16 as its 16 bits). Gives the paths. Throws FileError.
std::vector<std::string> write_tensors(const std::string& folder, const std::string& op,
                                       const std::vector<RecordedTensor>& tensors);

}  // namespace lockstep::replay
