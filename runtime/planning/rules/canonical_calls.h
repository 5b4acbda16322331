#pragma once
#include "runtime/rule_set.h"

/// Native local calls that canonical ones build on.
namespace lockstep::rules {
void local_embedding(const LocalCall& call, torch::jit::Stack& stack);
void local_pick(const LocalCall& call, torch::jit::Stack& stack);
}  // namespace lockstep::rules

/// The canonical forms of one family each, put together by canonical().
namespace lockstep::rules {

std::span<const CanonicalForm> canonical_attention();
std::span<const CanonicalForm> canonical_sums();
std::span<const CanonicalForm> canonical_products();

}  // namespace lockstep::rules
