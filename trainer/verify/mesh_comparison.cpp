#include "trainer/verify/mesh_comparison.h"

#include "trainer/verify/place_of_errors.h"

namespace lockstep::trainer {

MeshComparison::MeshComparison(const Job& job, const TrainingRun::Options& options)
    : mesh_(options.mesh.text()), verifier_(job, options) {
  if (!asks_for_ops(job)) return;
  if (!StepVerifier::compares_bits(job)) trained_ = std::make_unique<TrainingRun>(job, options);
  ops_.emplace(trained_ ? *trained_ : verifier_.candidate(), job.verify.sample);
}

StepCheck MeshComparison::check(int64_t step, const TokenBatch& batch, double learning_rate) {
  if (!ops_) return verifier_.check(step, batch, learning_rate);
  auto& watched = trained_ ? *trained_ : verifier_.candidate();
  StepCheck check;
  if (trained_ && step == 1) check = verifier_.check_start(step, trained_->state(), trained_->mesh());
  if (check.agrees() && trained_) check = verifier_.check(step, batch, learning_rate);
  if (!check.agrees()) return check;
  {
    const ObserverScope scope(watched.world().observers(), ops_->observer());
    if (trained_)
      with_place(mesh_, step, [&] { return trained_->step(step, batch, learning_rate); });
    else
      check = verifier_.check(step, batch, learning_rate);
  }
  ops_->judge(check);
  return check;
}

}  // namespace lockstep::trainer
