#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fuzz/search/case_name.h"
#include "fuzz/search/check.h"

namespace lockstep::fuzz {

struct Progress {
  int64_t cases = 0, failures = 0;
  double seconds = 0;
};

struct SearchOptions {
  uint64_t seed = 1;
  double seconds = 60;        ///< no case begins later
  int64_t cases = 0;          ///< of all checks together, in turns; 0: as many as there is time for
  int workers = 1;            ///< processes; 0: none, all in this one
  double case_seconds = 120;  ///< a case of a worker that takes longer has failed
  double shrink_seconds = 10;
  std::function<void(const Progress&)> on_progress = {};  ///< a few times a second
  std::function<bool()> should_stop = [] { return false; };
};

/// How far a check got.
struct CheckTally {
  std::string check;
  int64_t cases = 0, left_out = 0;
  int64_t compared = 0, refused = 0;  ///< comparisons with one device; calls refused as they should be
};

struct FoundFailure {
  CaseName name;  ///< as small as it got
  std::string message;
};

struct SearchResult {
  int64_t cases = 0;
  double seconds = 0;
  uint64_t digest = 0;  ///< of all that was drawn, in any order
  std::vector<CheckTally> tallies;
  std::vector<FoundFailure> failures;  ///< one of a check at most: the first of its cases that fails

  CheckTally total() const;
};

/// Tries cases of all checks in turns. The n-th case of a check does not depend on time or workers. A worker that dies,
/// or does not come back, is a failure of its case. A check that compared nothing, in cases enough to know, has failed.
SearchResult search(const Checks& checks, const SearchOptions& options);

}  // namespace lockstep::fuzz
