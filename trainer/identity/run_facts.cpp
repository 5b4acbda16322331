#include "trainer/identity/run_facts.h"

#include <optional>

#include "core/digest/build_id.h"
#include "core/error.h"
#include "core/numerics_version.h"
#include "trainer/data/data_file.h"
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

}  // namespace

Facts run_facts(const Job& job) {
  Facts facts{{"the build", build_id()}, {"the numerics version", std::to_string(kNumericsVersion)}};
  for (const auto& key : job_keys()) facts.push_back(fact_of(key, job));
  if (!job.training.dataset_path.empty())
    facts.emplace_back("the digest of the data", data_digest(job.training.dataset_path));
  facts.emplace_back("the checkpoint to resume from", step_to_resume_from(job));
  return facts;
}

}  // namespace lockstep::trainer
