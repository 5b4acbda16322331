#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/mutation/forward_outputs.h"
#include "trainer/mutation/mutant.h"
#include "trainer/mutation/mutant_classes.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// What became of one mutant.
struct Trial {
  Mutant mutant;
  bool is_equivalent = false;  ///< no bit of loss, norm and state of any rank is another in all steps
  std::string caught_by = {};  ///< "start", "step", "error"; empty: it was not
  int64_t at_step = 0;
  bool is_exact = false;  ///< the report names what the mutant declared beforehand
  std::string report = {};
  std::map<std::string, bool> others = {};  ///< whether other approaches see it, by their names

  bool is_caught() const { return !caught_by.empty(); }
};

/// Runs mutants of a small job: Llama with grouped heads and dropout, on meshes and microbatches that reach most of the
/// runtime.
class Trials {
 public:
  Trials();
  ~Trials();

  std::span<const Stage> stages() const { return stages_; }
  Trial run(const Mutant& mutant) const;

  /// Steps without a fault, on the stages and two meshes more, under canonical and native numerics.
  struct Clean {
    int64_t steps = 0, meshes = 0;
    int64_t cases = 0;   ///< ops and moves that were compared, each by itself (mode ops)
    int64_t values = 0;  ///< that steps were compared by
    int64_t alarms = 0;  ///< steps that raised one
  };
  Clean run_clean(int64_t steps_of_each) const;

  static constexpr int64_t kSteps = 3;

 private:
  struct Right;

  const Right& right_of(const Mutant& mutant) const;
  void run_alone(Trial& trial) const;
  void run_verified(Trial& trial) const;
  static void run_clean_on(const Stage& stage, bool is_canonical, int64_t steps, Clean& clean);

  std::vector<Stage> stages_;
  std::vector<std::unique_ptr<Right>> rights_;  ///< of each stage
};

}  // namespace lockstep::trainer
