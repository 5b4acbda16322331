#pragma once
#include <c10/util/SmallVector.h>

#include <optional>
#include <string_view>
#include <vector>

#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/tensor/placement.h"

namespace lockstep {

/// One dimension of an operand or a result of an op, as its sharding rule sees it. Dimensions with one label are cut
/// alike. A label counts units; the dimension has `factor` elements per unit (a view that splits 32 into 4 x 8 labels
/// 32 as a*8, 4 as a, 8 as nothing).
struct OpShardingDim {
  int label = kWhole;
  int64_t factor = 1;
  static constexpr int kWhole = -1;  ///< cannot be sharded by this op
};
using OpShardingDims = c10::SmallVector<OpShardingDim, 6>;

/// How a Partial operand flows to the results.
enum class Linearity : uint8_t {
  kNone,      ///< not: it is reduced first
  kEach,      ///< linear in this operand while the others are whole (a factor of a product)
  kJoint,     ///< linear in all joint operands together (a summand): all are Partial or none is
  kAdditive,  ///< a summand of a contraction (a bias): Partial whenever the contraction is
};

/// The sharding rule of one concrete call: what may be cut together. Everything else (candidates, costs, checks) is
/// derived from it.
struct OpSharding {
  std::vector<OpShardingDims> operands;  ///< one per tensor operand, list elements counted one by one
  std::vector<OpShardingDims> results;
  std::vector<Linearity> linearity;       ///< per operand
  Reduction reduction = Reduction::kSum;  ///< how the ranks' results combine when a label that vanishes is cut
  bool can_reduce = true;                 ///< labels that vanish may be cut at all
  bool exact = false;                     ///< sums may be taken before or after without changing a bit
  std::optional<SumTree> batch;           ///< Rule::kSamples: over the first dimension of operand 0
  bool disjoint = false;                  ///< see Rule::kDisjoint
  bool rounds = false;                    ///< see Rule::kRounds

  int label_count() const;
  /// Position of `label` in operand dims, or -1.
  static int find(const OpShardingDims& dims, int label);
};

/// Reads "mk,kn->mn" for operands and results of the given numbers of dimensions.
///
/// A letter is a label; an upper-case letter must stay whole; "..." stands for leading dimensions, aligned at the right
/// and broadcast: a dimension of size 1 against a larger one is whole. Throws InternalError if the text does not fit.
OpSharding parse_op_sharding(std::string_view dims, const std::vector<std::vector<int64_t>>& operand_sizes,
                             const std::vector<std::vector<int64_t>>& result_sizes);

/// Reads one character per operand: '-' none, 'e' each, 'j' joint, 'a' additive; the last one repeats.
std::vector<Linearity> parse_linearity(std::string_view text, size_t operand_count);

}  // namespace lockstep
