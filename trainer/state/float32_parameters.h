#pragma once
#include "models/module.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// The parameters that training.mixed_precision_float32 names compute in float32, and with one all of its module's
/// (models::Parameter::compute_in_float32): an op takes operands of one type. Linear maps whose weights are rounded for
/// generation stay what they are.
///
/// BadInput for a pattern that fits none, naming those that there are, for one that fits a part of a fused parameter or
/// any of a linear map that model.converters quantises, for any where all compute in float32, and for any with [lora],
/// whose changes have the type of what they change. (What a step changes in its own way, Parameter::is_buffer(), is
/// float32 anyway.)
void keep_in_float32(models::Model& model, const Job& job);

}  // namespace lockstep::trainer
