#pragma once
#include <string>
#include <vector>

#include "trainer/job/job_setting.h"

namespace lockstep::tool {

/// Arguments split into `--section.key` overrides of a job and the rest.
struct SplitArguments {
  std::vector<trainer::Setting> overrides;
  std::vector<std::string> rest;
};

/// Takes main's arguments. Throws BadInput for an unknown key or a missing value.
SplitArguments split(int count, const char* const* arguments);

}  // namespace lockstep::tool
