#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What things are called in a folder of checkpoints. Only names that are exactly these are a save's to remove.
namespace lockstep::trainer {

/// "step-40"
std::string step_folder_name(int64_t step);
/// The step in such a name, none for any other name ("step-040").
std::optional<int64_t> step_of_folder(std::string_view name);

/// FileError if the folder's name is that of another step: it was renamed or copied, and would be taken for that step.
/// Names without a step are fine.
void require_own_name(const std::string& folder, int64_t step);

/// "data-0003-00001-0000.safetensors"
std::string data_file_name(int64_t attempt, int64_t process, size_t part);
/// The attempt that wrote a data file, or the temporary file that was to become one; none for any other name.
std::optional<int64_t> attempt_of(std::string_view name);
/// Whether saves write files of this name besides the index: data files, and the temporary ones of these and of the
/// index.
bool is_of_save(std::string_view name);

}  // namespace lockstep::trainer
