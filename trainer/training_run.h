#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "runtime/world.h"
#include "trainer/batching.h"
#include "trainer/dataset.h"
#include "trainer/gradient_accumulator.h"
#include "trainer/job.h"
#include "trainer/mesh_hooks.h"
#include "trainer/training_state.h"

namespace lockstep::trainer {

/// What one step gives besides the new state.
struct StepResult {
  double loss = 0;                    ///< mean over the valid tokens of the global batch
  double gradient_norm = 0;           ///< before clipping
  std::vector<at::Tensor> gradients;  ///< raw (before clipping), in the parameters' layouts and order; if asked for
};

/// A label that carries no loss.
inline constexpr int64_t kIgnoredLabel = -100;

/// A job on one mesh in one domain: the model, its state, and the step. Several may live side by side (a run and its
/// references), each in a World of its own.
class TrainingRun {
 public:
  struct Options {
    MeshDegrees mesh;
    Domain domain = Domain::kNative;
    bool meta = false;  ///< shapes and traffic only, for one rank
    bool keep_gradients = false;
    std::shared_ptr<const RuleSet> rules = {};
    std::vector<int> local_ranks = {};                                ///< empty: all ranks live here
    std::shared_ptr<Transport> transport = {};                        ///< needed where they do not
    std::function<std::unique_ptr<models::Model>()> make_model = {};  ///< empty: the job's model
  };

  /// REQUIRES: a resolved job.
  TrainingRun(Job job, Options options);
  ~TrainingRun();

  /// Step `step` (counted from 1) on its global batch. Throws Inconsistency, with the state untouched, when the loss or
  /// the gradient norm is not finite.
  StepResult step(int64_t step, const TokenBatch& batch, double learning_rate);

  TrainingState& state() { return state_; }
  const TrainingState& state() const { return state_; }
  World& world() { return *world_; }
  const Mesh& mesh() const { return plan_->mesh(); }
  const Batching& batching() const { return batching_; }
  models::Model& model() { return *model_; }

 private:
  /// The sum of the microbatch's token losses, still Partial: a float, or fixed-point integers (canonical).
  at::Tensor run_microbatch(int64_t step, int64_t microbatch, const TokenBatch& batch, double valid);
  BlockOptions with_leaves(BlockOptions options) const;
  double loss_of(const at::Tensor& sum, double valid) const;
  at::Tensor whole(const at::Tensor& scalar) const;
  void update(int64_t step, const std::vector<at::Tensor>& gradients, double learning_rate, double scale);

  Job job_;
  Options options_;
  Batching batching_;
  std::unique_ptr<World> world_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<ShardingPlan> plan_;
  std::unique_ptr<MeshHooks> hooks_;
  TrainingState state_;
  std::unique_ptr<GradientAccumulator> accumulator_;
};

/// The numerics of a job; canonical in the native domain only.
Numerics numerics_of(const Job& job, Domain domain);

/// The model that a job names.
std::unique_ptr<models::Model> make_model(const Job& job);

/// "dp_shard=2,tp=2" without the axes of size 1.
std::vector<MeshAxis> mesh_axes(const MeshDegrees& degrees);

}  // namespace lockstep::trainer
