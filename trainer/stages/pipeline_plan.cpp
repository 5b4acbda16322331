#include "trainer/stages/pipeline_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "trainer/pipeline/block_split.h"
#include "trainer/pipeline/check.h"
#include "trainer/pipeline/kinds/schedule_kinds.h"
#include "trainer/pipeline/schedule_csv.h"

namespace lockstep::trainer {
namespace {

using pipeline::Schedule;

constexpr double kWhole = 1 << 20;

pipeline::Schedule of_one_rank(int64_t microbatches) {
  return pipeline::make_schedule("1F1B", {.microbatches = microbatches});
}

/// A block as a job names it: by its path ("layers.0", "head"), or else by the modules that are stored of it, which
/// are torchtitan's ("norm", "output").
std::vector<std::string> names_of(const models::Module& block, const ParallelismSection& parallelism) {
  const auto& parts = parallelism.module_fqns_per_model_part;
  const auto names_path = [&](const auto& part) { return std::ranges::find(part, block.path()) != part.end(); };
  if (std::ranges::any_of(parts, names_path)) return {block.path()};
  std::vector<std::string> names;
  for (const auto* parameter : block.parameters())
    for (const auto& part : parameter->division().parts()) {
      const bool is_below = part.name.starts_with(block.path() + ".");
      const auto name = is_below ? block.path() : part.name.substr(0, part.name.rfind('.'));
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  return names;
}

std::vector<int64_t> first_blocks_as_named(const ParallelismSection& parallelism, models::Model& model) {
  std::vector<std::string> names;
  std::vector<int64_t> begins;  // of each block among the names
  for (const auto* block : model.blocks()) {
    begins.push_back(static_cast<int64_t>(names.size()));
    for (auto& name : names_of(*block, parallelism)) names.push_back(std::move(name));
  }
  auto first = pipeline::split_as_named(names, parallelism.module_fqns_per_model_part);
  for (auto& name : first) {
    const auto block = std::ranges::find(begins, name);
    if (block == begins.end())
      fail<BadInput>(
          "parallelism.module_fqns_per_model_part: {} and {} are of one block of the model; name them in one stage.",
          names[static_cast<size_t>(name) - 1], names[static_cast<size_t>(name)]);
    name = block - begins.begin();
  }
  return first;
}

int64_t stages_of_parts(const ParallelismSection& parallelism, int64_t ranks) {
  const auto parts = static_cast<int64_t>(parallelism.module_fqns_per_model_part.size());
  if (parallelism.pipeline_parallel_layers_per_stage)
    fail<BadInput>(
        "parallelism.module_fqns_per_model_part names the blocks of each stage; leave "
        "pipeline_parallel_layers_per_stage out.");
  if (parts % ranks != 0)
    fail<BadInput>("parallelism.module_fqns_per_model_part has {} stages, no multiple of the {} ranks of mesh axis pp.",
                   parts, ranks);
  return parts / ranks;
}

int64_t stages_of_each_rank(const ParallelismSection& parallelism, const pipeline::ScheduleKind& kind, int64_t layers,
                            int64_t ranks) {
  if (!parallelism.module_fqns_per_model_part.empty()) return stages_of_parts(parallelism, ranks);
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

std::vector<int64_t> first_blocks_of(const Job& job, models::Model& model, int64_t stages) {
  if (job.parallelism.module_fqns_per_model_part.empty())
    return pipeline::split_by_weight(work_of_blocks(model, job.training.seq_len), stages);
  auto first = first_blocks_as_named(job.parallelism, model);
  if (static_cast<int64_t>(first.size()) != stages)
    fail<BadInput>("parallelism.module_fqns_per_model_part has {} stages, and the schedule {}.", first.size(), stages);
  return first;
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
  PipelinePlan plan{schedule_of(job, blocks - 2, ranks, microbatches), {}};
  if (plan.stages() > blocks)
    fail<BadInput>(
        "mesh axis pp={}: {} makes {} stages, and the model has {} blocks: choose a smaller "
        "parallelism.pipeline_parallel_degree, or another pipeline_parallel_schedule.",
        ranks, plan.schedule.name, plan.stages(), blocks);
  plan.first_blocks = first_blocks_of(job, model, plan.stages());
  return plan;
}

}  // namespace lockstep::trainer
