#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "trainer/job/job_file.h"

namespace lockstep {

/// A job is refused, or prints to a text that reads as the same job.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto text = trainer::to_toml(trainer::parse_job(fuzz::text_of(data, size), "job.toml"));
    fuzz::require_that("parse(print(job)) == job",
                       [&] { return trainer::to_toml(trainer::parse_job(text, "job.toml")) == text; });
  } catch (const BadInput&) {
  }
  return 0;
}

}  // namespace lockstep
