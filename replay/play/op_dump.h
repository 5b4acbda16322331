#pragma once
#include <span>
#include <string>
#include <vector>

#include "replay/format/recording.h"
#include "replay/store/break_folder.h"
#include "runtime/context/observer.h"

namespace lockstep::replay {

/// What a rank that lives here holds of an op's sharded operands, copied: "operand.NAME".
std::vector<RecordedTensor> operands_of(const OpEvent& event, int rank);

/// What it holds of what the op gave, copied: "result.0".
std::vector<RecordedTensor> results_of(const OpEvent& event, std::span<const c10::IValue> results, int rank);

/// What an op of a rank's step took and gave, for people to look at: op.h5 (break_file()) and NAME.npy for each tensor
/// (NumPy's format, version 1.0; bfloat16 as its 16 bits), for a BreakFolder.
std::vector<BreakFolder::File> break_files(const std::string& op, int rank, int64_t step,
                                           const std::vector<RecordedTensor>& tensors);

}  // namespace lockstep::replay
