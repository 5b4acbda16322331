#pragma once
#include <string>
#include <vector>

#include "core/error.h"
#include "tools/lockstep/arguments.h"
#include "trainer/job/job.h"

namespace lockstep::tool {

/// `lockstep train --dry-run`: the collectives of a step, and what each class of ranks holds and sends.
ExitCode report_dry_run(const TrainOptions& options, const trainer::Job& job);

/// Ascending numbers in at most `width` characters: "0-5,8,10", "0-2,4,6..." where they do not fit.
std::string range_text(const std::vector<int>& numbers, size_t width);

}  // namespace lockstep::tool
