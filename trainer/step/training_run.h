#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/mesh_ops.h"
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

/// A number that a step was given or derived: what a recording keeps as bits.
struct StepScalar {
  const char* name;
  double value;
};

/// Hears of the steps of a TrainingRun.
class StepListener {
 public:
  virtual ~StepListener() = default;
  /// Nothing of the step has happened yet.
  virtual void begin_step(int64_t step, const TokenBatch& batch, double learning_rate, const TrainingState& state) = 0;
  /// The state is updated. Not called for a step that fails.
  virtual void end_step(std::span<const StepScalar> scalars) = 0;
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
    bool as_messages = false;                                         ///< World::Options::as_messages
    bool overlap = true;                                              ///< World::Options::overlap
  };

  /// REQUIRES: a resolved job.
  TrainingRun(Job job, Options options);
  ~TrainingRun();

  /// Step `step` (counted from 1) on its global batch. Throws Inconsistency, with the state untouched, when the loss or
  /// the gradient norm is not finite.
  StepResult step(int64_t step, const TokenBatch& batch, double learning_rate);

  /// Null: nobody listens. Borrowed.
  void set_listener(StepListener* listener) { listener_ = listener; }

  TrainingState& state() { return state_; }
  const TrainingState& state() const { return state_; }
  World& world() { return *world_; }
  const Mesh& mesh() const { return plan_->mesh(); }
  const Batching& batching() const { return batching_; }
  models::Model& model() { return *model_; }

 private:
  /// The sum of the microbatch's token losses, still Partial: a float, or fixed-point integers (canonical).
  at::Tensor placed(const std::vector<int64_t>& values, const TokenBatch& batch, const BatchRows& rows,
                    std::string_view axes) const;
  at::Tensor run_microbatch(int64_t step, int64_t microbatch, const TokenBatch& batch, double valid);
  BlockOptions with_leaves(BlockOptions options) const;
  double loss_of(const at::Tensor& sum, double valid) const;
  at::Tensor whole(const at::Tensor& scalar) const;
  void update(const std::vector<at::Tensor>& gradients, mesh_ops::AdamwOptions options);
  void report(const StepResult& result, double valid, const mesh_ops::AdamwOptions& options);

  Job job_;
  Options options_;
  Batching batching_;
  std::unique_ptr<World> world_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<ShardingPlan> plan_;
  std::unique_ptr<MeshHooks> hooks_;
  TrainingState state_;
  std::unique_ptr<GradientAccumulator> accumulator_;
  StepListener* listener_ = nullptr;
};

/// The numerics of a job; canonical in the native domain only.
Numerics numerics_of(const Job& job, Domain domain);

/// The model that a job names.
std::unique_ptr<models::Model> make_model(const Job& job);

/// "dp_shard=2,tp=2" without the axes of size 1.
std::vector<MeshAxis> mesh_axes(const MeshDegrees& degrees);

}  // namespace lockstep::trainer
