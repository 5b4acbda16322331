#pragma once
#include <optional>
#include <vector>

#include "runtime/planning/op_sharding.h"
#include "runtime/tensor/spec.h"

namespace lockstep {

/// One way in which one mesh axis may hold the operands and results of an op. A shard's unit is the dimension's factor.
struct Candidate {
  std::vector<Placement> operands, results;
  int summed = -1;  ///< the label that is cut and vanishes from a result
};

/// All candidates that follow from how an op may be sharded: cut each label; keep all whole; pass a Partial of each
/// `partial` kind through linear operands.
std::vector<Candidate> candidates(const OpSharding& sharding, const std::vector<Reduction>& partials);

/// The layouts that an op takes and gives.
struct ChosenLayouts {
  std::vector<Layout> operands;  ///< of plain operands: all R
  std::vector<Layout> results;
};

struct LayoutQuery {
  const Mesh& mesh;
  const OpSharding& sharding;
  std::vector<const TensorSpec*> given;  ///< per operand; null: a plain 0-dim tensor
  int written = -1;                      ///< operand that keeps its layout because it is written in place
  bool canonical = false;                ///< no op takes a Partial, but exactly linear ones an unordered one
  bool ordered = false;                  ///< sums are ordered: cut between leaves only, and one label at a time
  std::vector<std::vector<int64_t>> result_sizes = {};
};

/// The cheapest candidate of each mesh axis by bytes moved, under the policy: moves that are implied are
/// Partial -> R or S and R -> S or Partial; S -> R only where nothing else serves; S -> S' never, but for the other
/// operands of an op that writes one; an op takes a Partial only if no other operand has to move. Empty if there is
/// none (an in-place op whose operand would have to move).
std::optional<ChosenLayouts> choose_layouts(const LayoutQuery& input);

}  // namespace lockstep
