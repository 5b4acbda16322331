#pragma once
#include <optional>

#include "fuzz/calls/sharded_calls.h"
#include "runtime/planning/choose_layouts.h"

namespace lockstep::testing {

/// Turns one candidate per mesh axis into layouts, with units and cut orders that are drawn once.
class Arranger {
 public:
  Arranger(const Mesh& mesh, const OpSharding& sharding);

  const std::vector<Candidate>& all() const { return all_; }
  /// None where such layouts do not exist: an average of integers, or Partials that do not commute.
  std::optional<ChosenLayouts> arrange(const std::vector<size_t>& chosen, const OpCall& call) const;
  /// Some candidates with the chosen one's operands on each axis give results that lie so.
  bool predicts(const std::vector<size_t>& chosen, size_t result, const Layout& layout) const;
  std::vector<size_t> draw_choice() const;

 private:
  Layout layout(const OpShardingDims& dims, const std::vector<size_t>& chosen, bool result, size_t index) const;

  const Mesh& mesh_;
  const OpSharding& form_;
  std::vector<Candidate> all_;
  std::vector<std::vector<int64_t>> units_;  ///< per label and axis
  std::vector<int> order_;                   ///< axes, the first cuts first
};

}  // namespace lockstep::testing
