#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/stages/pipeline_plan.h"
#include "trainer/stages/stage.h"

namespace lockstep::trainer {

/// The stages of a model on a mesh. Stage s is where the axis pp has the coordinate of its rank; without that axis
/// there is one, on the whole mesh.
///
/// A parameter lives on the stage of its block. Another stage that reads it (a tied head) has a copy, which is brought
/// up to date before each step, and sends back what it finds of the gradient.
class Stages {
 public:
  /// Throws BadInput as plan_pipeline(), and for a parameter outside of all blocks where there are several stages.
  Stages(const Job& job, models::Model& model, const ShardingPlan& plan, const Batching& batching);

  const PipelinePlan& pipeline() const { return pipeline_; }
  size_t count() const { return stages_.size(); }
  Stage& operator[](size_t stage) { return *stages_[stage]; }
  Stage& last() { return *stages_.back(); }

  /// Where a parameter lives, and how.
  const ShardingPlan& plan_of(const models::Parameter& parameter) const;

  /// To be called once the parameters have their tensors.
  void start(const Stage::GradientCallback& callback);

  /// Brings the copies of shared parameters up to date.
  void refresh_shared();

  /// The step's gradients of all trainable parameters, in the model's order, where and as the parameters are; of those
  /// that live elsewhere no shards. Starts the next step.
  std::vector<at::Tensor> finish();
  /// Changes what balances experts by what the step's tokens chose.
  void balance_experts();
  /// Forgets a step that did not come to its end.
  void restart();

  /// What follows is not trained, or is again.
  void set_training(bool trains, models::KeyValueCache* cache, bool adapts);

 private:
  const Stage& owner_of(const models::Parameter& parameter) const;
  std::vector<SharedParameter> shared_of(Stage& stage);
  std::vector<at::Tensor> own_gradients(size_t stage, std::vector<at::Tensor>& shared);
  void add_shared(Stage& stage, std::vector<at::Tensor> found, std::vector<at::Tensor>& gradients);
  void require_blocks_have_all() const;
  void require_one_reader() const;

  models::Model& model_;
  PipelinePlan pipeline_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<models::Parameter*> trainable_;  ///< in the model's order
};

}  // namespace lockstep::trainer
