#pragma once
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// Throws BadInput where a job asks for numerics that its device does not have.
void require_device_offered(const Job& job);

}  // namespace lockstep::trainer
