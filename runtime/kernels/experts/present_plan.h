#pragma once
#include <cstdint>
#include <vector>

#include "runtime/kernels/products/product_plan.h"

namespace lockstep::kernels {

/// plan_product() of summands of which some are absent: what is absent adds +0, which changes no bit, and is left out,
/// so that the product reads those that are present alone, one after the other. `positions[s]`: of each sample that is
/// here (or of the one that the contraction is of) the elements that are present, ascending, counted from its first.
/// Nodes without any have no group: what they are is 0.
ProductPlan plan_present(const Contraction& contraction, const std::vector<std::vector<int64_t>>& positions,
                         int64_t group_limit);

}  // namespace lockstep::kernels
