#pragma once
#include <cstdint>
#include <string>

namespace lockstep {

/// How the values of a Partial combine.
enum class Reduction : uint8_t { kSum, kAvg, kMax, kMin, kProd };

/// How one mesh axis holds a tensor.
///
///   R          Replicate: every rank of the axis has all of it
///   S(d)       Shard: the axis cuts dimension d into chunks of ceil(units / ranks) units
///   S(d:u)     the same, in units of u elements (a head group, say); the last unit may be short
///   S(d)@k     the axis is the k-th (from 0) to cut d, where several axes cut one dimension out of mesh order
///   G(d)       of packed rows (Packing): S(d) of a dimension that numbers cells, so that ranks hold as many rows as
///              their cells have, which the value says. S(d) and G(d) are equal: which it is follows from the tensor
///   P(sum)     Partial: the ranks' values combine to the tensor's; also avg, max, min, prod
///   P(sum:n/l) an ordered Partial (canonical numerics): a sum over n summands in leaves of l (SumTree), which the axis
///              cuts as a Shard would cut a dimension of n; P(sum:n/l:u)@k as for S
///   P(sum:n/l+t) a formal sum of t such sums, which are added up, left to right, once each is whole
///   P(sum:n/l~w) the nodes of the w levels below the tree's root are rounded to the tensor's dtype
struct Placement {
  enum class Kind : uint8_t { kReplicate, kShard, kPartial };

  Kind kind = Kind::kReplicate;
  Reduction reduction = Reduction::kSum;  ///< of a Partial
  uint8_t depth = 0;                      ///< of a cut: how many axes cut the dimension (or the sum) before this one
  int dim = 0;                            ///< of a Shard
  int64_t unit = 1;                       ///< of a cut
  int64_t summands = 0;                   ///< of an ordered Partial
  int64_t leaf = 1;                       ///< of an ordered Partial
  int64_t terms = 1;                      ///< of an ordered Partial: so many sums stand side by side
  int64_t rounded_levels = 0;             ///< of an ordered Partial, below the root of its tree
  bool of_cells = false;                  ///< of a Shard: G(d); no part of what is compared

  /// What an axis cuts: a dimension, the summands of an ordered Partial, or nothing.
  static constexpr int kSummands = -1, kNothing = -2;
  static constexpr int64_t kMostTerms = 4;

  static Placement replicate() { return {}; }
  static Placement shard(int dim, int64_t unit = 1, uint8_t depth = 0) {
    return {Kind::kShard, Reduction::kSum, depth, dim, unit};
  }
  static Placement partial(Reduction reduction = Reduction::kSum) { return {Kind::kPartial, reduction}; }
  static Placement ordered_sum(int64_t summands, int64_t leaf, int64_t unit = 1, uint8_t depth = 0) {
    return {Kind::kPartial, Reduction::kSum, depth, 0, unit, summands, leaf};
  }

  bool is_replicate() const { return kind == Kind::kReplicate; }
  bool is_shard() const { return kind == Kind::kShard; }
  bool is_shard(int of_dim) const { return is_shard() && dim == of_dim; }
  bool is_partial() const { return kind == Kind::kPartial; }
  bool is_ordered() const { return is_partial() && summands > 0; }
  int cuts() const { return is_shard() ? dim : is_ordered() ? kSummands : kNothing; }

  bool operator==(const Placement& other) const {
    return kind == other.kind && reduction == other.reduction && depth == other.depth && dim == other.dim &&
           unit == other.unit && summands == other.summands && leaf == other.leaf && terms == other.terms &&
           rounded_levels == other.rounded_levels;
  }
};

/// "sum", "avg", ...
const char* to_text(Reduction reduction);

}  // namespace lockstep
