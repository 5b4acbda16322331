#pragma once
#include "consistency/blame.h"
#include "trainer/mutation/mutant.h"

namespace lockstep::trainer {

/// What a report of the mutant has to name, known before it runs.
Expectation expectation_of(const Mutant& mutant);

/// Whether a report does: what is blamed, and the whole text.
bool is_named(const Expectation& expected, const Blame& blame, const std::string& text);

}  // namespace lockstep::trainer
