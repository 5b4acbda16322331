#pragma once
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/plan.h"
#include "runtime/redistribute.h"

namespace lockstep {

/// What a World has worked out so far: plans of ops by everything they depend on, and redistributions. Belongs to one
/// (rules, mesh, domain); World::set_rules() clears it.
class PlanCache {
 public:
  std::unordered_map<PlanKey, std::unique_ptr<Plan>, PlanKeyHash> plans;
  std::map<std::pair<const TensorSpec*, const TensorSpec*>, std::vector<Move>> moves;
  int64_t hits = 0, misses = 0;

  void clear() {
    plans.clear();
    moves.clear();
  }
};

}  // namespace lockstep
