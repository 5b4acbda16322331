#include "tools/lockstep/reports/timeline_facts.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/numerics_version.h"
#include "replay/format/recorded_numerics.h"
#include "trainer/job/job_file.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::tool {
namespace {

std::string machine_text(const replay::StepRecording& recording) {
  std::string text;
  for (const char* wanted : {"device", "processor", "threads", "instruction_set", "build_id"})
    for (const auto& [key, value] : recording.machine)
      if (key == wanted) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", key, value);
  return text;
}

std::string numerics_text(const trainer::Job& job, const replay::StepRecording& recording) {
  if (!job.numerics.is_canonical()) return job.numerics.mode;
  return fmt::format("canonical, {}", numerics_version_text(replay::numerics_version_of(recording)));
}

void add_job(replay::TimelineHead& head, const trainer::Job& job, const replay::StepRecording& recording) {
  head.title = job.job.description;
  head.facts = {
      {"job", job.job.description},
      {"model", fmt::format("{} {}", job.model.name, job.model.flavor)},
      {"mesh", fmt::format("{}, {} {}", trainer::mesh_of(job).text(), recording.world,
                           recording.world == 1 ? "rank" : "ranks")},
      {"step", fmt::format("{} of {}", recording.step, job.training.steps)},
      {"batch", fmt::format("{} x {} tokens, {}, from sample {} on", recording.rows, recording.seq_len,
                            job.training.mixed_precision_param, recording.first_sample)},
      {"seed", std::to_string(job.debug.seed)},
      {"numerics", numerics_text(job, recording)},
  };
}

}  // namespace

replay::TimelineHead timeline_head(const replay::StepRecording& recording) {
  replay::TimelineHead head;
  try {
    add_job(head, trainer::parse_saved_job(recording.job, "the recorded job"), recording);
  } catch (const BadInput& error) {
    head.facts = {{"job", fmt::format("cannot be read: {}", error.what())}};
  }
  head.facts.emplace_back("machine", machine_text(recording));
  return head;
}

}  // namespace lockstep::tool
