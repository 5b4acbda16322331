#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/context/observer.h"
#include "trainer/data/dataset.h"
#include "trainer/mutation/mutant.h"
#include "trainer/mutation/other_calls.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// A mutant at work in one run: it changes what ops read, are told and give, what moves and collectives deliver, what
/// dropout draws, what microbatches add to gradients, what the optimizer is told, the state before a step, or what a
/// step is given. Watches the run through the seams that production code has.
class PlantedFault final : public Observer, public StepListener, private FaultyCalls {
 public:
  explicit PlantedFault(const Mutant& mutant);

  /// What the run has to be made with.
  void add_to(TrainingRun::Options& options, const Job& job);

  // To be called before step `step` (kMutationSteps + 1: at the end): what it begins from, and what it is given in
  // place of what is right.
  void before_step(TrainingState& state, int64_t step);
  TokenBatch batch(int64_t step, TokenBatch right);
  double rate(int64_t step, double right);

  /// A step may be run again: with the same fault, unless that is transient.
  void begin_step(int64_t step, const TokenBatch&, double, const TrainingState&) override;
  void take_gradient(int64_t microbatch, const std::string& parameter, at::Tensor& gradient) override;
  void end_step(std::span<const StepScalar>) override {}

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void before_collective(const CollectiveEvent& event) override;
  void received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) override;
  void after_move(const MoveEvent& event) override;

  /// How many values it has changed so far.
  int64_t changes() const { return changes_; }

 private:
  bool is_hit(int rank) const;
  bool is_here(const OpId& id) const;
  bool is_active() const;
  bool is_due(const OpId& id, int rank) override;
  void note_change() override { ++changes_; }
  void touch(const at::Tensor& value, const at::Tensor& other, const std::string& key);
  void spoil_shards(const Mesh& mesh, const Shards& shards, const std::vector<at::Tensor>& others = {});
  at::Tensor spoiled_copy(const at::Tensor& tensor);
  at::Tensor payload_of_other_group(const Mesh& mesh, int rank) const;

  Mutant mutant_;
  std::string key_;
  Memory memory_, memory_at_start_;             ///< now, and when the step began
  int64_t changes_ = 0, step_ = 0, times_ = 0;  ///< times_: that the step was begun
  int64_t moves_ = 0, pieces_ = 0;              ///< of the id, in this step
  bool is_in_collective_ = false;
  std::map<int, std::vector<at::Tensor>> payloads_;  ///< by rank, of the collective that goes on
  at::Tensor last_payload_;
  std::map<int64_t, double> rates_;
};

/// Of several groups along an axis, the rank at the same place of the next one; `rank` itself if there is one only.
int rank_of_other_group(const Mesh& mesh, int rank, int axis);

}  // namespace lockstep::trainer
