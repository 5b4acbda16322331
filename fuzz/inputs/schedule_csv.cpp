#include "trainer/pipeline/schedule_csv.h"

#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "trainer/pipeline/check.h"
#include "trainer/pipeline/pictures/text_picture.h"

namespace lockstep {

/// A file is refused, or it is carried out to its end, drawn, and written as a file that reads as the same schedule.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto schedule = pipeline::parse_schedule_csv(fuzz::text_of(data, size), "fuzz.csv").schedule;
    pipeline::check(schedule);
    fuzz::require_that("parse(print(schedule)) == schedule", [&] {
      return pipeline::parse_schedule_csv(pipeline::to_csv(schedule), schedule.name).schedule == schedule;
    });
    fuzz::require_that("a schedule has a picture",
                       [&] { return !pipeline::text_picture(schedule, pipeline::simulate(schedule), 80).empty(); });
  } catch (const BadInput&) {
  }
  return 0;
}

}  // namespace lockstep
