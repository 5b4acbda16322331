#pragma once
#include <string>

#include "runtime/planning/rule_set.h"

namespace lockstep::fuzz {

/// Property: a training step of a small job of odd shapes (trainer/verify/odd_shapes.h) on a random mesh is the step of
/// one device, values of ops, gradients and parameters: bit for bit under canonical numerics, to 1e-9 in the float64
/// domain under native. Counts in compared_cases()["steps"]. `rules`: the mesh's.
void a_step_equals_one_devices(const std::string& model, bool canonical, std::shared_ptr<const RuleSet> rules = {});

}  // namespace lockstep::fuzz
