// Optimizer steps: pointwise on a parameter, its gradient and its state.
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

constexpr Rule kRows[] = {
    {"mesh::adamw", "optimizer", "...,...,...,...->...", "-"},
};

}  // namespace

std::span<const Rule> optimizer() { return kRows; }

}  // namespace lockstep::rules
