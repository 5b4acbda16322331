#include "trainer/identity/run_facts.h"

#include <optional>

#include "core/digest/build_id.h"
#include "core/error.h"
#include "core/numerics_version.h"
#include "trainer/data/data_file.h"
#include "trainer/data/dataset.h"
#include "trainer/identity/run_start.h"

namespace lockstep::trainer {
namespace {

/// "none" also where the step that is asked for is missing here: that no rank has it is said later.
std::string step_to_resume_from(const Job& job) try {
  const auto step = step_to_resume(job);
  return step ? "step " + std::to_string(*step) : "none";
} catch (const BadInput&) {
  return "none";
}

std::string validation_digest(Job job) {
  job.training.dataset = job.validation.dataset;
  job.training.dataset_path = job.validation.dataset_path;
  return dataset_digest(job);
}

}  // namespace

Facts run_facts(const Job& job) {
  Facts facts{{"the build", build_id()}, {"the numerics version", std::to_string(kNumericsVersion)}};
  for (const auto& key : job_keys()) facts.push_back(fact_of(key, job));
  if (auto data = dataset_digest(job); !data.empty()) facts.emplace_back("the digest of the data", std::move(data));
  if (job.validation.enable) facts.emplace_back("the digest of the validation data", validation_digest(job));
  facts.emplace_back("the checkpoint to resume from", step_to_resume_from(job));
  return facts;
}

}  // namespace lockstep::trainer
