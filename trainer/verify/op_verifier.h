#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consistency/ops/op_check.h"
#include "replay/op_case/case_capture.h"
#include "trainer/state/state_writes.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// Whether the job asks for mode ops, if it is verified at all. Under native numerics mode step does as well: what that
/// compares are two others, which store doubles.
bool asks_for_ops(const Job& job);

/// Mode ops: while a Watch lasts, ops and moves of a run are compared, each by itself, with one device's (OpCheck).
class OpVerifier {
 public:
  /// `run` must outlive this. `sample`, `updates`: as OpCheck has them.
  OpVerifier(TrainingRun& run, int64_t sample, OpCheck::Updates updates = OpCheck::Updates::kSampled);

  /// The ops of the optimizer since this was asked last. REQUIRES: Updates::kAll.
  std::vector<std::string> take_updates() { return check_.take_updates(); }

  /// Compares ops of the run for the length of a scope, with Updates::kAll of one step.
  class Watch {
   public:
    explicit Watch(OpVerifier& verifier);

   private:
    ObserverScope ops_;
    std::optional<ObserverScope> writes_;
  };

  /// What else than updates wrote to the run's state in the step that was watched last, on this process's ranks; empty:
  /// nothing (StateWrites). REQUIRES: Updates::kAll; a Watch since this was asked last.
  std::string take_write() { return writes_.take_change(run_.state()); }

  /// Adds to `step`, which is on `check`'s step or about to be told of it: how much was compared, and, if `step` agrees
  /// and an op or a move does not, that. The same on all ranks: a collective of the mesh.
  void judge(StepCheck& step);

 private:
  void capture(const OpEvent& event);

  TrainingRun& run_;
  OpCheck::Updates updates_;
  OpCheck check_;
  StateWrites writes_;
  std::unique_ptr<replay::CaseCapture> capture_;  ///< of the op that was chosen last, up to the first that differs
};

}  // namespace lockstep::trainer
