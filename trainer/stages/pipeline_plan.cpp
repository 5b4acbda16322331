#include "trainer/stages/pipeline_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "trainer/pipeline/block_split.h"
#include "trainer/pipeline/check.h"
#include "trainer/pipeline/kinds/schedule_kinds.h"
#include "trainer/pipeline/schedule_csv.h"
#include "trainer/stages/named_parts.h"

namespace lockstep::trainer {
namespace {

using pipeline::Schedule;

constexpr double kWhole = 1 << 20;

pipeline::Schedule of_one_rank(int64_t microbatches) {
  return pipeline::make_schedule("1F1B", {.microbatches = microbatches});
}

int64_t stages_of_each_rank(const ParallelismSection& parallelism, const pipeline::ScheduleKind& kind, int64_t layers,
                            int64_t ranks) {
  if (!parallelism.module_fqns_per_model_part.empty()) return named_stages_per_rank(parallelism, ranks);
  if (!parallelism.pipeline_parallel_layers_per_stage) return kind.usual_stages;
  return pipeline::stages_per_rank({.layers = layers,
                                    .per_stage = *parallelism.pipeline_parallel_layers_per_stage,
                                    .first_less = parallelism.pipeline_parallel_first_stage_less_layers,
                                    .last_less = parallelism.pipeline_parallel_last_stage_less_layers},
                                   ranks);
}

Schedule schedule_of_file(const std::string& path, int64_t ranks, int64_t microbatches) {
  auto schedule = pipeline::read_schedule_csv(path).schedule;
  pipeline::check(schedule);
  if (static_cast<int64_t>(schedule.ranks.size()) != ranks || schedule.microbatches != microbatches)
    fail<BadInput>(
        "parallelism.pipeline_parallel_schedule_csv {} is for {} ranks and {} microbatches; the job has {} and {}.",
        path, schedule.ranks.size(), schedule.microbatches, ranks, microbatches);
  return schedule;
}

Schedule schedule_of(const Job& job, int64_t layers, int64_t ranks, int64_t microbatches) {
  const auto& parallelism = job.parallelism;
  if (!parallelism.pipeline_parallel_schedule_csv.empty())
    return schedule_of_file(parallelism.pipeline_parallel_schedule_csv, ranks, microbatches);
  const auto& kind = pipeline::schedule_kind(parallelism.pipeline_parallel_schedule);
  return pipeline::make_schedule(kind.name,
                                 {ranks, stages_of_each_rank(parallelism, kind, layers, ranks), microbatches});
}

}  // namespace

std::vector<int64_t> work_of_blocks(models::Model& model, int64_t length) {
  const auto blocks = model.blocks();
  const double attention = (model.operations_per_token(length) - model.operations_per_token(0)) / 6;
  const auto layers = static_cast<double>(std::max<size_t>(blocks.size(), 3) - 2);
  std::vector<double> work;
  for (size_t b = 0; b < blocks.size(); ++b) {
    double elements = b == 0 ? 0 : attention / layers;
    if (b + 1 == blocks.size()) elements = static_cast<double>(model.vocabulary() * model.width());
    if (b > 0 && b + 1 < blocks.size())
      for (const auto* parameter : blocks[b]->parameters()) elements += static_cast<double>(parameter->element_count());
    work.push_back(elements);
  }
  const double whole = std::max(std::accumulate(work.begin(), work.end(), 0.0), 1.0);
  std::vector<int64_t> parts;
  for (const double elements : work) parts.push_back(std::llround(elements / whole * kWhole));
  return parts;
}

PipelinePlan plan_pipeline(const Job& job, models::Model& model, int64_t ranks, int64_t microbatches) {
  if (ranks == 1) return {of_one_rank(microbatches), {0}};
  const auto blocks = static_cast<int64_t>(model.blocks().size());
  if (model.width() == 0)
    fail<BadInput>(
        "mesh axis pp={}: model.name \"{}\" does not give its blocks as a list (Model::block_calls), so that it cannot "
        "be cut into stages. parallelism.pipeline_parallel_degree must be 1.",
        ranks, job.model.name);
  const bool is_named = !job.parallelism.module_fqns_per_model_part.empty();
  const auto named = is_named ? first_blocks_as_named(job.parallelism, model) : std::vector<int64_t>{};
  PipelinePlan plan{schedule_of(job, blocks - 2, ranks, microbatches), named};
  if (plan.stages() > blocks)
    fail<BadInput>(
        "mesh axis pp={}: {} makes {} stages, and the model has {} blocks: choose a smaller "
        "parallelism.pipeline_parallel_degree, or another pipeline_parallel_schedule.",
        ranks, plan.schedule.name, plan.stages(), blocks);
  if (is_named && static_cast<int64_t>(named.size()) != plan.stages())
    fail<BadInput>("parallelism.module_fqns_per_model_part has {} stages, and {} has {}.", named.size(),
                   job.parallelism.pipeline_parallel_schedule_csv, plan.stages());
  if (!is_named)
    plan.first_blocks = pipeline::split_by_weight(work_of_blocks(model, job.training.seq_len), plan.stages());
  return plan;
}

}  // namespace lockstep::trainer
