#include "trainer/job/offered_device.h"

#include "core/error.h"

namespace lockstep::trainer {

void require_device_offered(const Job& job) {
  if (job.training.device == "cuda" && job.numerics.is_canonical())
    fail<BadInput>("training.device \"cuda\" needs numerics.mode = \"native\": canonical numerics is for CPUs.");
}

}  // namespace lockstep::trainer
