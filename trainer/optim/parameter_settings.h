#pragma once
#include <vector>

#include "models/module.h"
#include "trainer/job/job.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Whether a pattern (fits(), optimizer_settings.h) describes a parameter: its name, or those of all the tensors that
/// it is stored as ("*.wq.weight"). BadInput, which begins with `key`, where it describes some of them.
bool holds(std::string_view key, const std::string& pattern, const models::Parameter& parameter);

/// As checkpoints have it, if that is one tensor.
const std::string& name_of(const models::Parameter& parameter);

/// "Did you mean norm.weight? The model's 7 are a, b, c, d, ...": ends a message about a pattern that fits none.
std::string nearest_names(const std::string& pattern, const std::vector<std::string>& names);

/// What `[[optimizer.groups]]` says of each of the model's parameters, in their order: the first group whose pattern
/// fits counts (holds()). Freezes those of frozen groups.
///
/// Of Muon's, where no group says otherwise, are the matrices of the layers: parameters of two dimensions in what
/// Model::blocks() lists between the first block, which reads tokens, and the last, which gives logits.
///
/// Throws BadInput for a pattern that nothing is left for, or nothing but what is frozen already; for `muon = true` of
/// what is no matrix; where nothing is left to train. REQUIRES: no parameter was assigned yet.
std::vector<ParameterSettings> apply_groups(const OptimizerSection& optimizer, models::Model& model);

}  // namespace lockstep::trainer
