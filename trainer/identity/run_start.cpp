#include "trainer/identity/run_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/data/dataset.h"
#include "trainer/identity/run_identity.h"
#include "trainer/job/job_file.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {
namespace {

std::string text_of(const ChangedFact& fact) {
  return fmt::format("{} was {}, is {}", fact.name, fact.before, fact.now);
}

/// Throws unless the job allows all that changed.
void require_allowed(const std::string& folder, const std::vector<ChangedFact>& changed, const Job& job) {
  std::vector<std::string> refused, names;
  for (const auto& fact : changed) {
    const auto& allowed = job.checkpoint.allow_changed;
    if (std::find(allowed.begin(), allowed.end(), fact.name) != allowed.end()) continue;
    refused.push_back(text_of(fact));
    names.push_back(fact.name);
  }
  if (refused.empty()) return;
  fail<BadInput>(
      "{}: was saved by another run: {}. Give the values that it had, choose another checkpoint.folder, or go on with "
      "--checkpoint.allow_changed {}.",
      folder, fmt::join(refused, "; "), fmt::join(names, ","));
}

void require_last(const std::string& root, int64_t step) {
  const auto last = complete_steps(root).back();
  if (last > step)
    fail<BadInput>(
        "{}: has step {} of the run that this one would follow from step {} on, and would write over. Copy step {} to "
        "another checkpoint.folder, or leave checkpoint.load_step out.",
        root, last, step, step);
}

/// Of the job that saved the checkpoint. One of an older format does not know its data.
Facts saved_facts(const std::string& folder, const CheckpointMetadata& metadata) {
  return identity_facts(parse_saved_job(metadata.job, folder), metadata.origin.data);
}

}  // namespace

std::string checkpoint_root(const Job& job) {
  return (std::filesystem::path(job.job.dump_folder) / job.checkpoint.folder).string();
}

std::optional<int64_t> step_to_resume(const Job& job) {
  if (!job.checkpoint.enable) return std::nullopt;
  return step_to_load(checkpoint_root(job), job.checkpoint.load_step);
}

RunStart run_start(const Job& job) {
  const auto data = dataset_digest(job);
  const auto facts = identity_facts(job, data);
  RunStart start{{}, {identity_text(facts), data, {}}, {}};
  const auto root = checkpoint_root(job);
  start.step = step_to_resume(job);
  if (!start.step) return start;
  const auto folder = checkpoint_path(root, *start.step);
  const auto metadata = Checkpoint(folder).metadata();  // damage is named before what differs
  const auto before = saved_facts(folder, metadata);
  const auto changed = changed_facts(before, facts);
  require_allowed(folder, changed, job);
  start.origin.parents = metadata.origin.parents;
  const auto saved_by = metadata.origin.identity.empty() ? identity_text(before) : metadata.origin.identity;
  start.origin.identity = saved_by;
  if (changed.empty()) return start;
  require_last(root, *start.step);
  for (const auto& fact : changed) start.allowed.push_back(text_of(fact));
  start.origin.parents.push_back({saved_by, *start.step});
  start.origin.identity = identity_text(facts, start.origin.parents);
  return start;
}

Job with_saved_values(Job job, const Launch& launch) {
  if (!job.checkpoint.enable || job.training.global_batch_size != -1) return job;
  const auto root = checkpoint_root(job);
  const auto step = step_to_load(root, job.checkpoint.load_step);
  if (!step) return job;
  const auto folder = checkpoint_path(root, *step);
  const auto groups = mesh_of(resolve(job, launch)).data_parallel();
  job.training.global_batch_size = parse_saved_job(saved_metadata(folder).job, folder).training.global_batch_size;
  const auto rows = std::max<int64_t>(job.training.global_batch_size / groups, 1);
  auto& local = job.training.local_batch_size;
  local = std::min(local, rows);
  while (rows % local != 0) --local;
  return job;
}

std::string root_for_interrupted(const Job& job, const RunOrigin& origin) {
  auto root = checkpoint_root(job);
  for (const auto step : complete_steps(root)) {
    const auto saved = saved_origin(checkpoint_path(root, step));
    if (!saved || saved->identity != origin.identity) return folder_beside(job, origin);
  }
  return root;
}

std::string folder_beside(const Job& job, const RunOrigin& origin) {
  return checkpoint_root(job) + "-" + origin.identity.substr(0, 8);
}

}  // namespace lockstep::trainer
