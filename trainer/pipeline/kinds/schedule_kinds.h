#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/pipeline/schedule.h"

/// The schedules that have names, as pure functions.
namespace lockstep::pipeline {

struct PipelineSize {
  int64_t ranks = 1, stages_per_rank = 1, microbatches = 1;
};

struct ScheduleKind {
  std::string_view name;  ///< PyTorch's, where that has it
  int64_t usual_stages;   ///< per rank, where a job does not say how many
  int64_t most_stages;    ///< per rank
  Schedule (*make)(PipelineSize size);
  std::string_view about;
};

/// All of them, the simplest first.
std::span<const ScheduleKind> schedule_kinds();

/// By its name in any case, as PyTorch's get_schedule_class. BadInput, with the nearest, for a name that none has.
const ScheduleKind& schedule_kind(std::string_view name);

/// The schedule of that name. BadInput for sizes that it does not have. It passes check().
Schedule make_schedule(std::string_view name, PipelineSize size);

}  // namespace lockstep::pipeline
