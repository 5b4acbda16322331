#include "trainer/mutation/trials/faulty_run.h"

#include "trainer/verify/suite_batch.h"

namespace lockstep::trainer {

TokenBatch batch_at(const Job& job, int64_t sample) {
  auto batch = suite_batch(job, kMutationVocabulary, sample / job.training.global_batch_size + 1);
  batch.first_sample = sample;
  return batch;
}

FaultyRun::FaultyRun(const Mutant& mutant, const std::string& folder)
    : resumes_(mutant.resumes),
      fault_(mutant),
      job_(job_of(mutant.setup, folder)),
      run_(job_, faulty_options(mutant.setup)),
      schedule_(job_),
      planted_(run_.world().observers(), fault_) {
  run_.set_listener(&fault_);
}

TrainingRun::Options FaultyRun::faulty_options(const Setup& setup) {
  auto options = options_of(setup);
  fault_.add_to(options, job_);
  return options;
}

void FaultyRun::load() {
  if (!resumes_) return;
  checkpoints_.emplace(job_, processes_, run_);
  const auto metadata = checkpoints_->load([](const std::string&) {});
  LOCKSTEP_CHECK(metadata, "there is no checkpoint to resume from");
  first_ = metadata->step + 1, sample_ = metadata->sample;
}

}  // namespace lockstep::trainer
