#pragma once
#include "models/module.h"
#include "trainer/job/job.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Gives the model's linear weights that [lora] names changes of low rank, and freezes all else; a model without [lora]
/// stays as it is. BadInput, naming the weights that there are, for a pattern that fits none, or that fits a part of a
/// fused one. REQUIRES: no parameter was assigned yet.
void attach_adapters(models::Model& model, const LoraSection& lora);

/// The lengths of rows that DoRA starts with, in place: those of the weights as they are.
void start_magnitudes(models::Model& model, TrainingState& state);

}  // namespace lockstep::trainer
