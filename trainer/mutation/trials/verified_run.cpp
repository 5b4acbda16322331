#include "trainer/mutation/trials/verified_run.h"

#include "consistency/blame.h"
#include "core/error.h"
#include "trainer/mutation/expectation.h"
#include "trainer/mutation/trials/faulty_run.h"
#include "trainer/state/replicas.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

class VerifiedRun {
 public:
  VerifiedRun(const Mutant& mutant, const std::string& folder) : mutant_(mutant), faulty_(mutant, folder) {}

  Verdict run() {
    try {
      faulty_.load();
    } catch (const std::exception& error) {
      return ended("load", faulty_.first_step(), error);
    }
    verifier_.emplace(faulty_.job(), options_of(mutant_.setup), faulty_.run());
    expect();
    for (step_ = faulty_.first_step(); step_ <= kMutationSteps && !verdict_.is_caught(); ++step_) checked_step();
    if (!verdict_.is_caught()) check_end();
    return verdict_;
  }

 private:
  void expect() {
    const auto first = faulty_.first_step();
    const auto& job = faulty_.job();
    if (mutant_.resumes) verifier_->reload([&](TrainingState& state) { faulty_.load_into(state); }, first);
    verifier_->expect_batches([&job, first, sample = faulty_.sample(first)](int64_t step) {
      return batch_at(job, sample + (step - first) * job.training.global_batch_size);
    });
    verifier_->expect_rates(
        [schedule = LearningRateSchedule(job)](int64_t step) { return schedule.learning_rate(step); });
  }

  void checked_step() {
    try {
      faulty_.before_step(step_);
      const auto batch = faulty_.batch(step_);
      const auto check = verifier_->check(step_, batch, faulty_.rate(step_));
      if (!check.agrees()) return note(check);
      auto numbers = check.result.scalars;
      numbers.insert(numbers.begin(), {{"valid_tokens", check.result.valid_tokens},
                                       {"loss", check.result.loss},
                                       {"gradient_norm", check.result.gradient_norm}});
      note_copies(replica_difference(faulty_.run().state(), numbers, Copies::kParameters));
    } catch (const std::exception& error) {
      verdict_ = ended("error", step_, error);
    }
  }

  void check_end() {
    faulty_.before_step(step_);
    const auto check = verifier_->check_start(step_, faulty_.run().state(), faulty_.run().mesh());
    if (!check.agrees()) return note(check);
    note_copies(replica_difference(faulty_.run().state(), {}, Copies::kAll));
  }

  void note_copies(const std::string& difference) {
    if (!difference.empty()) verdict_ = {.mode = "replicas", .step = step_, .report = difference};
  }

  void note(const StepCheck& check) {
    const auto& blame = *check.blame;
    const bool is_before = blame.id.starts_with("none: step") && blame.id.ends_with("has not begun");
    const auto mode = !is_before ? "step" : blame.kind == "number" ? "rate" : blame.kind;
    const auto text = check.difference + "\n" + blame.text();
    verdict_ = {mode, step_, is_named(mutant_.expected, blame, text), blame.transient, text};
  }

  Verdict ended(const char* mode, int64_t step, const std::exception& error) const {
    const std::string text = error.what();
    const auto& expected = mutant_.expected;
    const bool is_of_load = expected.kind.empty() && !expected.value.empty();
    return {mode, step, is_of_load && text.find(expected.value) != std::string::npos, false, text};
  }

  const Mutant& mutant_;
  FaultyRun faulty_;
  std::optional<StepVerifier> verifier_;
  int64_t step_ = 1;
  Verdict verdict_;
};

}  // namespace

Verdict run_verified(const Mutant& mutant, const std::string& folder) { return VerifiedRun(mutant, folder).run(); }

}  // namespace lockstep::trainer
