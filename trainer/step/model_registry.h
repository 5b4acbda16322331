#pragma once
#include <memory>

#include "models/module.h"
#include "models/quantization.h"
#include "trainer/job/job.h"
#include "trainer/names/registry.h"

namespace lockstep::trainer {

/// Builds a model in the sizes of its flavor, but for those that the job gives. Throws BadInput where they do not fit.
using ModelBuilder = std::unique_ptr<models::Model> (*)(const Job& job);

/// By model.name.
Registry<ModelBuilder>& model_registry();

/// Makes the linear maps of a model what the job's converters say.
models::QuantizedLinears quantize_linears(const Job& job, models::Model& model);

/// The model that a job names, its linear maps quantised as the job says.
std::unique_ptr<models::Model> make_model(const Job& job);

}  // namespace lockstep::trainer
