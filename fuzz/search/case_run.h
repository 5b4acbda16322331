#pragma once
#include "core/error.h"
#include "fuzz/search/case_name.h"
#include "fuzz/search/check.h"

namespace lockstep::fuzz {

/// What became of one case.
struct CaseOutcome {
  enum class Kind { kHeld, kLeftOut, kFailed } kind = Kind::kHeld;
  std::string message;  ///< of a failure, in one line or a program's
  uint64_t drawn = 0;   ///< testing::drawn_digest() of it

  bool failed() const { return kind == Kind::kFailed; }
};

/// The check draws otherwise than when the case was named: there is no such case any more.
struct NoSuchCase : BadInput {
  using BadInput::BadInput;
};

/// Runs the case of that name. NoSuchCase where its steps lead nowhere.
CaseOutcome run_case(const Check& check, const CaseName& name);

/// A failed case made as small as `seconds` allow: it fails still. Without a message if it does not fail again.
struct SmallerCase {
  CaseName name;
  std::string message;
  uint64_t drawn = 0;
  int tried = 0;
};
SmallerCase shrink_case(const Check& check, const CaseName& failed, double seconds);

}  // namespace lockstep::fuzz
