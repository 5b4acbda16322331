#pragma once
#include "models/module.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// The parameters that training.mixed_precision_float32 names compute in float32, and with one all of its module's
/// (models::Parameter::compute_in_float32): a cast of another one would round its gradient before all microbatches' are
/// added.
///
/// BadInput for a pattern that fits none, naming those that there are, for one that fits a part of a fused parameter or
/// the weight of a quantised linear map, and for any with [lora], whose changes have the type of what they change.
void keep_in_float32(models::Model& model, const Job& job);

}  // namespace lockstep::trainer
