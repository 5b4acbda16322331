#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/key_value_cache.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "trainer/data/dataset.h"
#include "trainer/job/batching.h"
#include "trainer/job/job.h"
#include "trainer/measure/local_loss.h"
#include "trainer/optim/optimizer.h"
#include "trainer/sharding/sharding_plan.h"
#include "trainer/stages/pipeline_step.h"
#include "trainer/step/model_registry.h"
#include "trainer/step/training_state.h"

namespace lockstep::trainer {

/// What one step gives besides the new state.
struct StepResult {
  double loss = 0;                       ///< mean over the valid tokens, or pairs, of the global batch
  double gradient_norm = 0;              ///< before clipping
  double valid_tokens = 0;               ///< of the global batch: what losses are divided by
  std::vector<StepScalar> scalars = {};  ///< that the optimizer took
  /// Of the trainable parameters, raw (before clipping), in their layouts and order; if asked for.
  std::vector<at::Tensor> gradients;
  /// Of each token, by microbatch; 0 where there is no label. With the gradients, if asked for.
  std::vector<at::Tensor> token_losses = {};
  std::vector<LocalLoss> local_losses = {};  ///< by local rank; of a run without values: none
};

/// Hears of the steps of a TrainingRun.
class StepListener {
 public:
  virtual ~StepListener() = default;
  /// Nothing of the step has happened yet.
  virtual void begin_step(int64_t step, const TokenBatch& batch, double learning_rate, const TrainingState& state) = 0;
  /// What a microbatch's backward gave one use of a parameter, on its way into the step's gradient; may be replaced.
  virtual void take_gradient(int64_t /*microbatch*/, const std::string& /*parameter*/, at::Tensor& /*gradient*/) {}
  /// The state is updated. Not called for a step that fails.
  virtual void end_step(std::span<const StepScalar> scalars) = 0;
};

/// A job on one mesh in one domain: the model, its state, and the step. Several may live side by side (a run and its
/// references), each in a World of its own.
class TrainingRun {
 public:
  struct Options {
    MeshDegrees mesh;
    Domain domain = Domain::kDeclared;
    bool meta = false;  ///< shapes and traffic only, for one rank
    bool keep_gradients = false;
    bool loads_weights = true;  ///< checkpoint.initial_load_path; false for who puts another state in place
    std::shared_ptr<const RuleSet> rules = {};
    std::vector<int> local_ranks = {};                                ///< empty: all ranks live here
    std::shared_ptr<Transport> transport = {};                        ///< needed where they do not
    std::function<std::unique_ptr<models::Model>()> make_model = {};  ///< empty: the job's model
    bool as_messages = false;                                         ///< World::Options::as_messages
    bool overlap = true;                                              ///< World::Options::overlap
    std::function<std::unique_ptr<Optimizer>()> make_optimizer = {};  ///< empty: the job's optimizer
  };

  /// Throws BadInput for what the machine has no memory for (require_memory()). REQUIRES: a resolved job.
  TrainingRun(Job job, Options options);
  ~TrainingRun();

  /// Step `step` (counted from 1) on its global batch. Throws Inconsistency, with the state untouched, when the loss or
  /// the gradient norm is not finite, on all ranks if on any.
  StepResult step(int64_t step, const TokenBatch& batch, double learning_rate);

  // The parts of a step, for a schedule that has an order of its own. step() is begin_step(), then forward_loss() and
  // accumulate() for each microbatch in turn, then apply(). Microbatches are batching().accumulation_steps, from 0. A
  // pipeline has its own order: there step() alone does it.

  /// Counts the batch's valid tokens. `batch` is borrowed until apply() returns. A step that was begun before and not
  /// applied is forgotten.
  void begin_step(int64_t step, const TokenBatch& batch, double learning_rate);

  /// The forward of one microbatch: the loss of each of its tokens, or pairs (training.loss), with the graph that its
  /// backward needs. Any number
  /// of microbatches may be under way; each holds its activations.
  at::Tensor forward_loss(int64_t microbatch);

  /// The backward of one microbatch from what forward_loss() gave, which adds to the step's gradients and loss. In any
  /// order, each once: canonical bits stay the same, native gradients are added in this order.
  void accumulate(int64_t microbatch, const at::Tensor& losses);

  /// Reduces the gradients, clips them and updates the parameters. Throws as step() does. REQUIRES: all microbatches
  /// were accumulated.
  StepResult apply();

  /// What the model makes of a batch that it is not trained on, without dropout: the sum of its tokens' losses, and of
  /// how many. With `averages` the model is that of averaged_value(). Canonical: the same bits on every mesh. Nothing
  /// of the run changes. REQUIRES: no step is under way; a batch of the global batch's size.
  struct Evaluation {
    double loss_sum = 0;
    double tokens = 0;
  };
  Evaluation evaluate(int64_t step, const TokenBatch& batch, bool averages = false);

  /// What the model makes of tokens [batch, count], int64, without dropout: float32 [batch, count, vocabulary], on
  /// every rank whole. With a cache the tokens follow those that it has, and are in it afterwards; canonical: the same
  /// bits as if all had been read at once, on every mesh. Nothing of the run changes. Throws BadInput for a pipeline in
  /// several processes. REQUIRES: no step is under way.
  at::Tensor logits(const at::Tensor& tokens, models::KeyValueCache* cache = nullptr);

  /// The rows of a batch that this process's ranks need: of each microbatch their share, and what they count labels of.
  std::vector<Range> own_rows() const;

  /// Hears of each parameter once all are updated, on every rank in the same order; it changes nothing.
  void on_update(std::function<void(const ParameterState&)> callback) { update_callback_ = std::move(callback); }

  /// Null: nobody listens. Borrowed.
  void set_listener(StepListener* listener) { listener_ = listener; }

  TrainingState& state() { return state_; }
  const TrainingState& state() const { return state_; }
  World& world() { return *world_; }
  const Mesh& mesh() const { return plan_->mesh(); }
  const PipelinePlan& pipeline() const { return stages_->pipeline(); }
  const Batching& batching() const { return batching_; }
  models::Model& model() { return *model_; }
  /// Where the run's program is: its own calls use it. Who reads the state between two steps may, too, so that a
  /// collective that fails there is named by the step.
  RunContext& context() { return context_; }

 private:
  /// A step between begin_step() and apply().
  struct Underway {
    int64_t step;
    const TokenBatch* batch;
    double learning_rate;
    double valid_tokens;
    at::Tensor loss_sum = {};  ///< of token losses, still Partial: a float, or fixed-point integers (canonical)
    std::vector<at::Tensor> token_losses = {};  ///< by microbatch, if gradients are kept
    LocalLosses local_losses = {};
    std::map<int64_t, at::Tensor> reference_losses = {};  ///< by microbatch, where pairs are told apart
  };

  at::Tensor stage_output(Stage& stage, const TokenBatch& batch, const BatchRows& rows, const at::Tensor& input);
  at::Tensor stage_forward(Stage& stage, int64_t microbatch, const at::Tensor& input);
  void stage_backward(Stage& stage, int64_t microbatch, const at::Tensor& output, const at::Tensor& gradient);
  void end_stage(Stage& stage, int64_t microbatch, SplitBackward* split);
  /// What a stage makes of a microbatch; `input` of the first is not defined.
  using StageForward = std::function<at::Tensor(Stage& stage, int64_t microbatch, const at::Tensor& input)>;
  std::vector<at::Tensor> forwards(std::vector<int64_t> tokens, Range microbatches, const StageForward& forward);
  at::Tensor token_losses(Stage& stage, const at::Tensor& logits, const TokenBatch& batch, const BatchRows& rows);
  bool prefers() const { return job_.training.loss == kPreferenceLoss; }
  void find_reference_losses(Range microbatches);
  at::Tensor preferred(const at::Tensor& own, const at::Tensor& reference) const;
  at::Tensor counted(const TokenBatch& batch, const BatchRows& rows) const;
  at::Tensor placed(const ShardingPlan& plan, const std::vector<int64_t>& values, const TokenBatch& batch,
                    const BatchRows& rows, std::string_view axes) const;
  void run_pipeline_step();
  TrainingState first_state(const std::vector<ParameterSettings>& settings);
  Underway& underway();
  double labels_of(const TokenBatch& batch) const;
  double valid_tokens(const TokenBatch& batch) const;
  void require_finite(int64_t step, const StepResult& result) const;
  bool any_rank(bool here) const;
  double value_of(const at::Tensor& sum) const;
  double number_of(const at::Tensor& sum);
  std::vector<LocalLoss> local_losses_of_all(std::vector<LocalLoss> last) const;
  std::vector<at::Tensor> token_losses_of_all(std::vector<at::Tensor> last);
  at::Tensor whole(const at::Tensor& scalar) const;
  void update(const std::vector<at::Tensor>& gradients, std::vector<StepScalar>& scalars);
  void tell_updates() const;
  void report(const StepResult& result);

  Job job_;
  Options options_;
  Batching batching_;
  RunContext context_;
  std::unique_ptr<World> world_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<ShardingPlan> plan_;
  std::unique_ptr<Stages> stages_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainingState state_;
  std::optional<Underway> underway_;
  StepListener* listener_ = nullptr;
  std::function<void(const ParameterState&)> update_callback_;
};

}  // namespace lockstep::trainer
