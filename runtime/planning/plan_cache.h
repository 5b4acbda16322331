#pragma once
#include <memory>
#include <unordered_map>

#include "runtime/planning/plan.h"

namespace lockstep {

/// The plans that a World has made so far, by everything they depend on. A World::part().
class PlanCache {
 public:
  explicit PlanCache(World&) {}

  std::unordered_map<PlanKey, std::unique_ptr<Plan>, PlanKeyHash> plans;
  int64_t hits = 0, misses = 0;

  void clear() { plans.clear(); }
};

}  // namespace lockstep
