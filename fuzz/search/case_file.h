#pragma once
#include <string>
#include <vector>

#include "fuzz/search/search.h"

namespace lockstep::fuzz {

/// What a file of a failure holds: a line with its name, then lines of what it says.
struct CaseFile {
  std::string path;
  std::string kind;  ///< "ops"
  CaseName name;
};

/// Writes it into `folder`, which is made; returns its path. FileError where it cannot.
std::string write_case_file(const std::string& folder, const std::string& kind, const FoundFailure& failure);

/// BadInput for a file that is none.
CaseFile read_case_file(const std::string& path);

/// All of a folder and of those below it, in the order of their paths. BadInput if there is none.
std::vector<CaseFile> read_case_files(const std::string& folder);

}  // namespace lockstep::fuzz
