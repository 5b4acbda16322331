#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "trainer/job/job_file.h"

namespace lockstep {

/// "key=value" lines as overrides of an empty job: each is refused, or the job they give prints and reads back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    std::vector<trainer::Setting> overrides;
    for (auto rest = fuzz::text_of(data, size); !rest.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      const auto equals = std::min(line.find('='), line.size());
      overrides.push_back(trainer::command_line_setting(std::string(line.substr(0, equals)),
                                                        std::string(line.substr(std::min(equals + 1, line.size())))));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    const auto text = trainer::to_toml(trainer::parse_job("", "job.toml", overrides));
    fuzz::require_that("parse(print(job)) == job",
                       [&] { return trainer::to_toml(trainer::parse_job(text, "job.toml")) == text; });
  } catch (const BadInput&) {
  }
  return 0;
}

}  // namespace lockstep
