#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/format/recording.h"

/// A step's file (FORMAT.md), as bytes: nothing here touches the disk.
namespace lockstep::replay {

/// The whole file. Equal recordings give equal bytes. Throws BadInput for what validate() refuses.
Bytes to_file(const StepRecording& recording);

/// The recording that `file` holds; tensors of the state come in the order of their names. The file may come from
/// anybody: it is opened in a process of its own (reader_process.h), and what comes back satisfies validate(). Throws
/// FileError that names `path` and what is wrong; `path` serves for messages alone.
StepRecording from_file(std::span<const std::byte> file, const std::string& path);

/// What `replay --break` found, as a HDF5 file for people and other tools: a dataset for each tensor, and attributes
/// `format` (kBreakFormat, in the file's first bytes), `op`, `rank` and `step`; nothing else. Throws BadInput for what
/// validate() refuses in tensors.
Bytes break_file(const std::string& op, int rank, int64_t step, const std::vector<RecordedTensor>& tensors);
inline constexpr std::string_view kBreakFormat = "lockstep-break";

}  // namespace lockstep::replay
