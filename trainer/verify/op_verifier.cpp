#include "trainer/verify/op_verifier.h"

#include "trainer/verify/agreed_blame.h"

namespace lockstep::trainer {

bool asks_for_ops(const Job& job) {
  return job.verify.has(kOpsMode) || (job.verify.has(kStepMode) && !StepVerifier::compares_bits(job));
}

OpVerifier::OpVerifier(TrainingRun& run, int64_t sample, OpCheck::Updates updates)
    : run_(run), updates_(updates), check_(run.world(), sample, updates) {
  check_.on_chosen([this](const OpEvent& event) { capture(event); });
}

OpVerifier::Watch::Watch(OpVerifier& verifier) : ops_(verifier.run_.world().observers(), verifier.check_) {
  if (verifier.updates_ != OpCheck::Updates::kAll) return;
  verifier.writes_.begin(verifier.run_.state());
  writes_.emplace(verifier.run_.world().observers(), verifier.writes_);
}

/// What an op takes is there before it runs: by the time that its result is wrong it may be overwritten.
void OpVerifier::capture(const OpEvent& event) {
  if (check_.blame()) return;
  capture_ = std::make_unique<replay::CaseCapture>(event.id.text());
  capture_->before_op(event);
}

void OpVerifier::judge(StepCheck& step) {
  step.ops = check_.counts();
  const auto blamed = agreed_blame(run_.mesh(), check_.blame());
  if (!blamed || !step.agrees()) return;
  step.blame = blamed->blame;
  step.difference = step.blame->worst;
  if (step.blame->is_of_move()) step.op_case = case_of_move(run_.mesh(), *blamed, check_.blame(), check_.moved());
  if (step.blame->kind != "op") return;
  // Ranks of other stages have not seen the op.
  std::optional<replay::OpCase> part;
  if (check_.blame() && check_.blame()->text() == step.blame->text() && !check_.expected().empty())
    part = capture_->take(step.blame->text(), check_.expected());
  step.op_case = joined_case(run_.mesh(), *blamed, std::move(part));
}

}  // namespace lockstep::trainer
