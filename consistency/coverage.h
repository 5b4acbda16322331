#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/context/observer.h"

namespace lockstep {

/// What of the runtime a run has come to: what it did not come to, comparing it says nothing of.
struct Coverage {
  std::set<std::string> rows;  ///< of the op table: "mm"
  /// Of each row that was reached, the candidates that its calls had (docs/rules.md), as "S(0),R -> S(0)", and whether
  /// some op ran in it on a mesh axis of several ranks.
  std::map<std::string, std::map<std::string, bool>> candidates;
  std::set<std::string> moves;                           ///< "S -> R by all_gather, uneven shards"
  std::set<std::string> collectives;                     ///< "all_gather"
  std::map<std::string, std::set<int64_t>> group_sizes;  ///< of each collective, over how many ranks it went

  void add(const Coverage& other);
  int64_t candidate_count() const;
  int64_t reached_candidates() const;
};

/// What there is to reach.
std::vector<std::string> all_rows();
std::vector<std::string> all_moves();
std::vector<std::string> all_collectives();
/// Those of `all` that `reached` lacks.
std::vector<std::string> missing(const std::vector<std::string>& all, const std::set<std::string>& reached);

/// What a run did not come to.
struct Gaps {
  std::vector<std::string> items;  ///< names, or how many each family lacks: "pointwise 40 of 62"
  bool are_names = true;
};

/// More names than these are counted by family.
inline constexpr size_t kMostGapNames = 12;

/// Of the op table.
Gaps gaps_of_rows(const Coverage& coverage);
/// Of the rows that were reached: "mm S(1),S(0) -> P".
Gaps gaps_of_candidates(const Coverage& coverage);

/// Sees what a run comes to. Reads plans alone: nothing is communicated, and all ranks see the same.
class CoverageObserver final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void after_move(const MoveEvent& event) override;
  void before_collective(const CollectiveEvent& event) override;

  const Coverage& coverage() const { return coverage_; }

 private:
  void note_candidates(const OpEvent& event);
  void note_collective(CollectiveKind kind, const Mesh& mesh, int axis);

  Coverage coverage_;
  std::set<const Plan*> seen_;  ///< plans live as long as the run
};

}  // namespace lockstep
