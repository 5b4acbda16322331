#pragma once
#include <string>

#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// What a step that does not agree is reported as: the first value that differs, and the op to blame.
std::string finding_of(const StepCheck& check);

struct Finding {
  std::string text;
  std::string case_file;  ///< empty: there is none
};

/// The same, with the op's case written into `folder` (case-N.h5, the first N that is free), for `lockstep replay
/// --case`. A folder that cannot be written to is said in the text.
Finding finding_with_case(const StepCheck& check, const std::string& folder);

}  // namespace lockstep::trainer
