#pragma once
#include <string>

#include "trainer/mutation/mutant.h"

namespace lockstep::trainer {

/// Saves in folder `to` the checkpoint in folder `from` with the mutant's fault, as a build that cuts chunks or counts
/// wrongly would: every chunk is what its digest says. Returns whether anything has changed.
bool save_wrongly(const std::string& from, const std::string& to, const Mutant& mutant);

}  // namespace lockstep::trainer
