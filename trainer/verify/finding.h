#pragma once
#include <string>

#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// What a step that does not agree is reported as: the first value that differs, and the op to blame.
std::string finding_of(const StepCheck& check);

struct Finding {
  std::string text;
  std::string case_file;  ///< empty: there is none
  std::string next;       ///< the command to go on with; empty: none is known
};

/// The same, with the op's case written into `folder` (case-N.h5, the first N that is free), for `lockstep replay
/// --case`. A folder that cannot be written to is said in the text.
Finding finding_with_case(const StepCheck& check, const std::string& folder);

/// The same on every rank: the one that has the op's case writes it down, and says where. A collective of the mesh.
Finding agreed_finding(const Mesh& mesh, const StepCheck& check, const std::string& folder);

/// With a command to go on with, where there is no case: one that makes the step again.
Finding with_next(Finding finding, const std::string& command);
/// The text of a finding with such a command, before what it says of resuming; as it is if it names one.
std::string with_next(const std::string& text, const std::string& command);
/// The command that a finding's text names; empty if it names none.
std::string next_of(const std::string& text);

}  // namespace lockstep::trainer
