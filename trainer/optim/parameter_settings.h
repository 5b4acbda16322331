#pragma once
#include <vector>

#include "models/module.h"
#include "trainer/job/job.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// What `[[optimizer.groups]]` says of each of the model's parameters, in their order: the first group whose pattern
/// fits counts. A pattern fits a parameter by its name, or by the names of all the tensors that it is stored as
/// ("*.wq.weight"). Freezes those of frozen groups.
///
/// Of Muon's, where no group says otherwise, are the matrices of the layers: parameters of two dimensions in what
/// Model::blocks() lists between the first block, which reads tokens, and the last, which gives logits.
///
/// Throws BadInput for a pattern that nothing is left for, or that fits a part of what a parameter is stored as; for
/// `muon = true` of what is no matrix; where nothing is left to train. REQUIRES: no parameter was assigned yet.
std::vector<ParameterSettings> apply_groups(const OptimizerSection& optimizer, models::Model& model);

}  // namespace lockstep::trainer
