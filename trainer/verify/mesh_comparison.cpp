#include "trainer/verify/mesh_comparison.h"

#include "trainer/verify/place_of_errors.h"

namespace lockstep::trainer {

MeshComparison::MeshComparison(const Job& job, const TrainingRun::Options& options)
    : mesh_(options.mesh.text()), verifier_(job, options) {
  if (!StepVerifier::compares_bits(job)) {
    auto trained = options;
    trained.keep_gradients = true;
    trained_ = std::make_unique<TrainingRun>(job, trained);
    whole_ = std::make_unique<NativeRunCheck>(job, options, verifier_, *trained_);
  }
  if (trained_)
    ops_.emplace(*trained_, job.verify.sample, OpCheck::Updates::kAll);
  else if (asks_for_ops(job))
    ops_.emplace(verifier_.candidate(), job.verify.sample);
}

StepCheck MeshComparison::check(int64_t step, const TokenBatch& batch, double learning_rate) {
  if (trained_) return check_trained(step, batch, learning_rate);
  if (!ops_) return verifier_.check(step, batch, learning_rate);
  const OpVerifier::Watch watch(*ops_);
  auto check = verifier_.check(step, batch, learning_rate);
  ops_->judge(check);
  return check;
}

StepCheck MeshComparison::check_trained(int64_t step, const TokenBatch& batch, double learning_rate) {
  StepCheck check;
  if (step == 1) check = verifier_.check_start(step, trained_->state(), trained_->mesh());
  if (!check.agrees()) return check;
  whole_->begin(step);
  check = verifier_.check(step, batch, learning_rate);
  if (!check.agrees()) return check;
  with_place(mesh_, step, [&] {
    StepResult result;
    {
      const OpVerifier::Watch watch(*ops_);
      result = trained_->step(step, batch, learning_rate);
    }
    ops_->judge(check);
    if (check.agrees()) whole_->judge(step, batch, learning_rate, result, *ops_, check);
  });
  return check;
}

}  // namespace lockstep::trainer
