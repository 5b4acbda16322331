#pragma once
#include <memory>
#include <unordered_map>

#include "runtime/planning/plan.h"

namespace lockstep {

/// The plans that a World has made lately, by everything they depend on. A World::part().
///
/// Bounded: plans are kept in two generations. When the young one is full the old one goes, and what is used again
/// comes back from it. A plan that is in use is in one of them.
class PlanCache {
 public:
  static constexpr size_t kGeneration = 16384;

  explicit PlanCache(World&) {}

  /// Null if there is none.
  Plan* find(const PlanKey& key) {
    if (const auto found = young_.find(key); found != young_.end()) return ++hits, found->second.get();
    const auto found = old_.find(key);
    if (found == old_.end()) return ++misses, nullptr;
    auto entry = old_.extract(found);
    ++hits;
    make_room();
    return young_.insert(std::move(entry)).position->second.get();
  }

  Plan& add(PlanKey&& key, std::unique_ptr<Plan> plan) {
    make_room();
    return *young_.emplace(std::move(key), std::move(plan)).first->second;
  }

  size_t size() const { return young_.size() + old_.size(); }
  void clear() { young_.clear(), old_.clear(); }

  int64_t hits = 0, misses = 0;

 private:
  void make_room() {
    if (young_.size() < kGeneration) return;
    old_ = std::move(young_);
    young_.clear();
  }

  using Plans = std::unordered_map<PlanKey, std::unique_ptr<Plan>, PlanKeyHash>;
  Plans young_, old_;
};

}  // namespace lockstep
