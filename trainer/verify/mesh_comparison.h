#pragma once
#include <memory>
#include <optional>

#include "trainer/verify/native_run_check.h"
#include "trainer/verify/op_verifier.h"

namespace lockstep::trainer {

/// Steps of a job on one mesh beside one device, in the modes that the job asks for: what `lockstep verify` does.
///
/// Mode step always. Mode ops under canonical numerics watches the run that mode step compares; under native numerics,
/// where that one stores doubles, another, which stores what training does and is compared as a whole as well.
class MeshComparison {
 public:
  MeshComparison(const Job& job, const TrainingRun::Options& options);

  /// As StepVerifier::check().
  StepCheck check(int64_t step, const TokenBatch& batch, double learning_rate);

  TrainingRun& candidate() { return verifier_.candidate(); }

 private:
  std::string mesh_;
  StepCheck check_trained(int64_t step, const TokenBatch& batch, double learning_rate);

  StepVerifier verifier_;
  std::unique_ptr<TrainingRun> trained_;  ///< under native numerics
  std::unique_ptr<NativeRunCheck> whole_;
  std::optional<OpVerifier> ops_;
};

}  // namespace lockstep::trainer
