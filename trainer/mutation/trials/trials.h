#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/mutation/mutant.h"
#include "trainer/mutation/mutant_classes.h"
#include "trainer/mutation/trials/clean_steps.h"
#include "trainer/mutation/trials/verified_run.h"
#include "trainer/mutation/trials/work_folder.h"

namespace lockstep::trainer {

/// What became of one mutant.
struct Trial {
  Mutant mutant;
  /// No bit of loss, gradients, norm and state of any rank is another in any step.
  bool is_equivalent = false;
  int64_t changes = 0;                      ///< how many values it changed, where nothing looked for it
  Verdict verdict = {};                     ///< of --verify
  std::map<std::string, bool> others = {};  ///< whether other approaches see it, by their names
  int64_t replicas_step = 0;                ///< after which copies differ by digest; 0: none

  bool is_caught() const { return verdict.is_caught(); }
  /// Why an equivalent one is, and what is known of a survivor.
  std::string reason() const;
};

/// Runs mutants of small jobs: Llama with grouped heads and GPT-2, with dropout, AdamW and SGD, float32 and bfloat16,
/// on meshes and microbatches that reach most of the runtime.
class Trials {
 public:
  Trials();
  ~Trials();

  std::span<const SurveyedRun> stages() const { return stages_; }
  Trial run(const Mutant& mutant) const;

  /// Steps without a fault, on the stages and two meshes more, under canonical and native numerics.
  CleanSteps run_clean(int64_t steps_of_each) const;

 private:
  struct Right;

  void prepare(SurveyedRun& stage);
  size_t stage_of(const Mutant& mutant) const;
  std::string folder_of(size_t stage) const { return work_.file("stage-" + std::to_string(stage)); }
  std::string folder_for(const Mutant& mutant) const;
  void run_alone(Trial& trial, const std::string& folder) const;
  void run_steps(Trial& trial, const std::string& folder) const;

  WorkFolder work_;
  std::vector<SurveyedRun> stages_;
  std::vector<std::unique_ptr<Right>> rights_;  ///< of each stage
};

}  // namespace lockstep::trainer
