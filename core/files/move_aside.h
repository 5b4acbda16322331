#pragma once
#include <string>

namespace lockstep {

/// Renames a file to the first name that is free: a/b.txt to a/b-1.txt, a/b-2.txt ... Gives the new name.
/// FileError if it cannot be renamed. REQUIRES: nobody else takes names in its folder.
std::string move_aside(const std::string& path);

}  // namespace lockstep
