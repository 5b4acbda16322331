// What a run does with batches besides training on them.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/tensor/spec.h"
#include "trainer/optim/weight_average.h"
#include "trainer/stages/not_trained.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

/// The model computes with averages in a scope.
class WithAverages {
 public:
  WithAverages(models::Model& model, const TrainingState& state) : parameters_(model.parameters()), state_(state) {
    for (size_t p = 0; p < state.size(); ++p) {  // replicas may share averages out (update_layout())
      const auto& layout = layout_of(state[p].value);
      parameters_[p]->assign(redistribute_values(averaged_value(state[p]), layout, "average"));
    }
  }
  ~WithAverages() {
    for (size_t p = 0; p < state_.size(); ++p) parameters_[p]->assign(state_[p].value);
  }
  WithAverages(const WithAverages&) = delete;
  WithAverages& operator=(const WithAverages&) = delete;

 private:
  std::vector<models::Parameter*> parameters_;
  const TrainingState& state_;
};

}  // namespace

TrainingRun::Evaluation TrainingRun::evaluate(int64_t step, const TokenBatch& batch, bool averages) {
  const RunContext::Use use(context_);
  LOCKSTEP_CHECK(!underway_ && !options_.meta, "a step is under way");
  LOCKSTEP_CHECK_EQ(batch.rows, batching_.global_batch_size);
  const at::NoGradGuard no_grad;
  context_.begin_microbatch(step, 0);
  Evaluation evaluation;
  evaluation.tokens = labels_of(batch);
  const NotTrained scope(*stages_, {});
  std::optional<WithAverages> averaged;
  if (averages) averaged.emplace(*model_, state_);
  stages_->refresh_shared();
  for (int64_t m = 0; m < batching_.accumulation_steps; ++m) context_.begin_microbatch(step, m);
  at::Tensor sum;
  forwards({batching_.rows(0).count, batch.seq_len}, {0, batching_.accumulation_steps},
           [&](Stage& stage, int64_t microbatch, const at::Tensor& input) {
             const auto rows = batching_.rows(microbatch);
             const BatchScope batch_scope(rows);
             auto output = stage_output(stage, batch, rows, input);
             if (!stage.is_last()) return output;
             auto part = world_->canonical() ? mesh_ops::fixed_point_sum(output) : at::sum(output);
             sum = sum.defined() ? at::add(sum, part) : part;
             return part;
           });
  evaluation.loss_sum = number_of(sum);
  return evaluation;
}

at::Tensor TrainingRun::logits(const at::Tensor& tokens, models::KeyValueCache* cache) {
  const RunContext::Use use(context_);
  LOCKSTEP_CHECK(!underway_ && !options_.meta, "a step is under way");
  if (stages_->count() > 1 && mesh().local_count() < mesh().ranks().size())
    fail<BadInput>(
        "mesh {}: in several processes a pipeline gives no logits; parallelism.pipeline_parallel_degree must "
        "be 1.",
        mesh().text());
  const at::NoGradGuard no_grad;
  const NotTrained scope(*stages_, {.cache = cache});
  context_.begin_microbatch(0, 0);
  stages_->refresh_shared();
  const BatchScope batch_scope({.count = tokens.size(0)});
  const auto read = [&](Stage& stage, int64_t, const at::Tensor& input) {
    const PhaseScope phase(Phase::kForward);
    const auto layout = stage.plan().activation(tokens.sizes(), "batch whole");
    stage.hooks().set_positions({});
    return stage.forward(stage.is_first() ? distribute(tokens, layout) : input, tokens.sizes());
  };
  const auto last = forwards(tokens.sizes().vec(), {0, 1}, read)[0];
  auto result = gather(last.to(c10::kFloat));
  if (cache) cache->set_length(cache->length() + tokens.size(1));
  return result;
}

double TrainingRun::value_of(const at::Tensor& sum) const {
  if (options_.meta) return 0;
  if (!world_->canonical()) return sum.item<double>();
  const auto plain = gather(sum);
  const auto* parts = plain.const_data_ptr<int64_t>();
  return parts[1] > 0 ? NAN : std::ldexp(static_cast<double>(parts[0]), -mesh_ops::kFixedPointBits);
}

std::vector<Range> TrainingRun::own_rows() const {
  std::vector<Range> own;
  const auto add = [&](const BatchRows& rows) {
    const std::vector<int64_t> sizes{rows.count, job_.training.seq_len};
    const auto* spec = mesh().specs().intern(plan_->activation(sizes, "batch length"), sizes, c10::kLong);
    for (size_t i = 0; i < mesh().local_count(); ++i)
      for (const auto& run : rows.runs(spec->cut(i, 0))) own.push_back({run.rows.start + run.shift, run.rows.length});
  };
  add({.count = batching_.global_batch_size});
  for (int64_t m = 0; m < batching_.accumulation_steps; ++m) add(batching_.rows(m));
  return own;
}

}  // namespace lockstep::trainer
