#include "trainer/stages/pipeline_step.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/taken_gradient.h"
#include "trainer/pipeline/execution_order.h"

namespace lockstep::trainer {
namespace {

using Kind = StageTransfers::Kind;
using pipeline::Action;
using pipeline::ActionKind;

/// What a stage keeps of a microbatch between its forward and its backward.
struct Kept {
  at::Tensor input, output;
  std::shared_ptr<at::Tensor> input_gradient = {};
  std::unique_ptr<SplitBackward> split = {};  ///< if the schedule has backwards in two parts
};

/// What the stage's hooks gather is cut off from the parameters.
class Splitting {
 public:
  Splitting(Stage& stage, SplitBackward* split) : stage_(stage) { stage_.hooks().set_split(split); }
  ~Splitting() { stage_.hooks().set_split(nullptr); }
  Splitting(const Splitting&) = delete;
  Splitting& operator=(const Splitting&) = delete;

 private:
  Stage& stage_;
};

bool has_parts(const pipeline::Schedule& schedule) {
  for (const auto& actions : schedule.ranks)
    for (const auto& action : actions)
      if (action.kind == ActionKind::kBackwardInput) return true;
  return false;
}

class Pipeline {
 public:
  Pipeline(Stages& stages, RunContext& context, std::vector<int64_t> tokens, const StageWork& work)
      : stages_(stages),
        context_(context),
        work_(work),
        transfers_(stages, context, std::move(tokens)),
        splits_(has_parts(stages.pipeline().schedule)) {}

  void carry_out(const Action& action) {
    auto& stage = stages_[static_cast<size_t>(action.stage)];
    context_.continue_microbatch(action.microbatch);
    if (action.kind == ActionKind::kForward) forward(stage, action.microbatch);
    if (gives_input_gradients(action.kind)) backward(stage, action);
    if (ends_microbatch(action.kind)) end(stage, action.microbatch);
  }

 private:
  void forward(Stage& stage, int64_t microbatch) {
    Kept kept;
    if (!stage.is_first()) {
      kept.input = transfers_.take(Kind::kActivation, stage, microbatch).requires_grad_();
      kept.input_gradient = taken_gradient(kept.input);
    }
    if (splits_) kept.split = std::make_unique<SplitBackward>();
    {
      const Splitting splitting(stage, kept.split.get());
      kept.output = work_.forward(stage, microbatch, kept.input);
    }
    if (!stage.is_last()) kept.output = transfers_.handed_on(stage, kept.output);
    if (!stage.is_last()) transfers_.give(Kind::kActivation, stage, microbatch, kept.output.tensor_data());
    kept_[{stage.number(), microbatch}] = std::move(kept);
  }

  /// Of a first part alone what is left stays in the microbatch's SplitBackward.
  void backward(Stage& stage, const Action& action) {
    auto& kept = kept_.at({stage.number(), action.microbatch});
    const auto gradient = stage.is_last() ? at::Tensor() : transfers_.take(Kind::kGradient, stage, action.microbatch);
    {
      const Splitting splitting(stage, kept.split.get());
      std::optional<DeferredGradients::Scope> deferring;
      if (action.kind == ActionKind::kBackwardInput) deferring.emplace(kept.split->deferred());
      work_.backward(stage, action.microbatch, std::exchange(kept.output, {}), gradient);
    }
    if (!stage.is_first()) give_gradient(stage, action.microbatch, std::exchange(kept.input, {}), *kept.input_gradient);
  }

  void give_gradient(Stage& stage, int64_t microbatch, const at::Tensor& input, at::Tensor& found) {
    const PhaseScope phase(Phase::kBackward);
    const at::NoGradGuard no_grad;
    {
      const ModuleScope scope(stage.path());
      if (!found.defined()) found = at::zeros_like(input);
      found = redistribute_values(found, transfers_.layout_into(stage), "redistribute");
    }
    transfers_.give(Kind::kGradient, stage, microbatch, std::exchange(found, {}));
  }

  void end(Stage& stage, int64_t microbatch) {
    const auto kept = kept_.extract({stage.number(), microbatch});
    work_.end(stage, microbatch, kept.mapped().split.get());
  }

  Stages& stages_;
  RunContext& context_;
  const StageWork& work_;
  StageTransfers transfers_;
  bool splits_;
  std::map<std::pair<int64_t, int64_t>, Kept> kept_;  ///< by stage and microbatch
};

}  // namespace

void run_pipeline(Stages& stages, RunContext& context, std::vector<int64_t> tokens, const StageWork& work) {
  const auto& schedule = stages.pipeline().schedule;
  Pipeline pipeline(stages, context, std::move(tokens), work);
  for (const auto& place : pipeline::execution_order(schedule)) {
    const auto& action = pipeline::action_at(schedule, place);
    if (stages[static_cast<size_t>(action.stage)].is_here()) pipeline.carry_out(action);
  }
}

}  // namespace lockstep::trainer
