#pragma once
#include "fuzz/search/case_name.h"
#include "fuzz/search/check.h"

namespace lockstep::fuzz {

/// What became of one case.
struct CaseOutcome {
  enum class Kind { kHeld, kLeftOut, kFailed } kind = Kind::kHeld;
  std::string message;  ///< of a failure, in one line or a program's

  bool failed() const { return kind == Kind::kFailed; }
};

/// Runs the case of that name. BadInput where its steps lead nowhere: the check draws otherwise than when it was named.
CaseOutcome run_case(const Check& check, const CaseName& name);

/// A failed case made as small as `seconds` allow: it fails still.
struct SmallerCase {
  CaseName name;
  std::string message;
  int tried = 0;
};
SmallerCase shrink_case(const Check& check, const CaseName& failed, double seconds);

}  // namespace lockstep::fuzz
