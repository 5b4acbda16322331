#pragma once
#include <string>

#include "trainer/mutation/mutant.h"

namespace lockstep::trainer {

/// What `train --verify` says of a run.
struct Verdict {
  /// Which check found it: "load" (what a checkpoint holds beside the tensors), "start" (state before a step, at the
  /// end), "data", "rate", "step", "replicas"; "error": the run ended by another error than one of these; empty:
  /// nothing did.
  std::string mode = {};
  int64_t step = 0;
  bool is_named = false;      ///< the report names what the mutant declared beforehand
  bool is_transient = false;  ///< it says that the step agrees when it is run again
  std::string report = {};

  bool is_caught() const { return !mode.empty(); }
};

/// Makes the mutant's run as the training loop does with --verify and its default modes: what it resumes from, its
/// first state, each batch against a second reader, each rate, each step, copies after each, and what is left at the
/// end. Up to the first finding. `folder`: of its checkpoints.
Verdict run_verified(const Mutant& mutant, const std::string& folder);

}  // namespace lockstep::trainer
