#pragma once
#include "runtime/planning/rules/built_in_rules.h"

/// Native local calls that canonical ones build on.
namespace lockstep::rules {
void local_embedding(const LocalCall& call, torch::jit::Stack& stack);
}  // namespace lockstep::rules

/// The canonical forms of one family each, put together by canonical().
namespace lockstep::rules {

std::span<const CanonicalRule> canonical_sums();
std::span<const CanonicalRule> canonical_products();

}  // namespace lockstep::rules
