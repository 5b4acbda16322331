#include "trainer/stages/pipeline_step.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/pipeline/execution_order.h"
#include "trainer/sharding/taken_gradient.h"

namespace lockstep::trainer {
namespace {

using Kind = StageTransfers::Kind;
using pipeline::Action;

/// What a stage keeps of a microbatch between its forward and its backward.
struct Kept {
  at::Tensor input, output;
  std::shared_ptr<at::Tensor> input_gradient = {};
};

class Pipeline {
 public:
  Pipeline(Stages& stages, RunContext& context, std::vector<int64_t> tokens, const StageWork& work)
      : stages_(stages), context_(context), work_(work), transfers_(stages, context, std::move(tokens)) {}

  void carry_out(const Action& action) {
    auto& stage = stages_[static_cast<size_t>(action.stage)];
    context_.continue_microbatch(action.microbatch);
    if (action.kind == pipeline::ActionKind::kForward)
      forward(stage, action.microbatch);
    else
      backward(stage, action.microbatch);
  }

 private:
  void forward(Stage& stage, int64_t microbatch) {
    Kept kept;
    if (!stage.is_first()) {
      kept.input = transfers_.take(Kind::kActivation, stage, microbatch).requires_grad_();
      kept.input_gradient = taken_gradient(kept.input);
    }
    kept.output = work_.forward(stage, microbatch, kept.input);
    if (!stage.is_last()) {
      const PhaseScope phase(Phase::kForward);
      const ModuleScope scope(stage.path());
      kept.output = transfers_.handed_on(stage, kept.output);
    }
    if (!stage.is_last()) transfers_.give(Kind::kActivation, stage, microbatch, kept.output.tensor_data());
    kept_[{stage.number(), microbatch}] = std::move(kept);
  }

  void backward(Stage& stage, int64_t microbatch) {
    auto kept = std::move(kept_.extract({stage.number(), microbatch}).mapped());
    const auto gradient = stage.is_last() ? at::Tensor() : transfers_.take(Kind::kGradient, stage, microbatch);
    work_.backward(stage, microbatch, kept.output, gradient);
    if (stage.is_first()) return;
    const PhaseScope phase(Phase::kBackward);
    const at::NoGradGuard no_grad;
    auto& found = *kept.input_gradient;
    {
      const ModuleScope scope(stage.path());
      if (!found.defined()) found = at::zeros_like(kept.input);
      found = redistribute_values(found, transfers_.layout_into(stage), "redistribute");
    }
    transfers_.give(Kind::kGradient, stage, microbatch, found);
  }

  Stages& stages_;
  RunContext& context_;
  const StageWork& work_;
  StageTransfers transfers_;
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
