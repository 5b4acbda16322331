// Optimizer steps: pointwise on a parameter, its gradient and its state.
#include "runtime/rule_set.h"

namespace lockstep::rules {
namespace {

constexpr Rule kRows[] = {
    {"mesh::adamw", "optimizer", "...,...,...,...->...", "-"},
};

}  // namespace

std::span<const Rule> optimizer() { return kRows; }

}  // namespace lockstep::rules
