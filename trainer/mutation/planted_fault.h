#pragma once
#include <map>
#include <memory>
#include <string>

#include "runtime/context/observer.h"
#include "runtime/planning/rule_set.h"
#include "trainer/mutation/mutant.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// A mutant at work in one run: it changes what ops give, what moves and collectives deliver, what dropout draws, what
/// the optimizer is told, or the state before a step. Watches the run through the seams that production code has.
class PlantedFault final : public Observer, public StepListener {
 public:
  explicit PlantedFault(const Mutant& mutant);

  /// What the run has to be made with.
  void add_to(TrainingRun::Options& options, const Job& job);
  /// To be called between two steps, before step `step`.
  void before_step(TrainingRun& run, int64_t step);

  /// A step may be run again, with the same fault.
  void begin_step(int64_t step, const TokenBatch&, double, const TrainingState&) override;
  void end_step(std::span<const StepScalar>) override {}

  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void before_collective(const CollectiveEvent& event) override;
  void received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) override;
  void after_move(const MoveEvent& event) override;

  /// How many values it has changed so far.
  int64_t changes() const { return changes_; }

 private:
  bool is_hit(int rank) const;
  bool is_here(const OpId& id) const;
  void spoil_shards(const Shards& shards, const std::vector<int>& ranks);
  void spoil_state(TrainingState& state);

  Mutant mutant_;
  std::string key_;
  Memory memory_, memory_at_start_;  ///< now, and when the step began
  int64_t changes_ = 0, step_ = 0;
  int64_t moves_ = 0, pieces_ = 0;  ///< of the id, in this step
  bool is_in_collective_ = false;
  at::Tensor last_payload_;  ///< of the rank before, of the collective that goes on
};

}  // namespace lockstep::trainer
