#pragma once
#include <string>
#include <vector>

namespace lockstep {

/// Creates a folder and those around it that are missing, and makes each new name durable: a crash of the machine takes
/// no folder away that holds what was flushed. Gives the new ones, the outermost first. An empty path is the current
/// folder. Several processes may create one folder at once.
///
/// FileError with path and reason if something else is in the way, or the system refuses; what is new by then stays.
std::vector<std::string> make_folders(const std::string& path);

}  // namespace lockstep
