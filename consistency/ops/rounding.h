#pragma once
#include "consistency/difference.h"
#include "consistency/ops/one_device.h"
#include "consistency/ops/taken_operands.h"

/// What rounding may do to values that native numerics computes (consistency/bounds/): to an op's results, and to a
/// tensor on its way from one layout to another.
namespace lockstep {

/// Whether it is known what rounding may do to the results of an op: a row of a program's own may be in no table.
bool has_bound(const OpEvent& event);

/// One op, and what it took.
struct TakenOp {
  const OpEvent& event;
  const TakenOperands& operands;
  const std::vector<at::Tensor>& values;    ///< TakenOperands::values()
  const std::vector<at::Tensor>& expected;  ///< what one device gives, in the same dtypes
};

/// Whether rounding alone may explain the difference between `results` and one device's, by a bound that is larger than
/// it need be and costs little. No answer but yes counts.
bool are_close_enough(const TakenOp& op, const std::vector<HeldShards>& results);

/// Of each result, how it compares with what the op gives in double.
std::vector<Difference> differences_beyond_rounding(const TakenOp& op, const std::vector<HeldShards>& results,
                                                    OneDevice& in_double);

/// Of an op of a run that stores doubles: how far each result may be from what one that stores what tensors declare
/// gives on the same operands; not defined for what rounds nothing. `results` are the op's. REQUIRES: one device.
std::vector<at::Tensor> allowed_as_declared(const OpEvent& event, const TakenOperands& operands,
                                            const std::vector<HeldShards>& results);

/// The same of results that are compared with `op.expected`, which was rounded as they were.
std::vector<Difference> differences_of_rounded(const TakenOp& op, const std::vector<HeldShards>& results,
                                               OneDevice& in_double);

/// A move that adds up, of which `before` and `after` have the shards of every rank.
Difference difference_beyond_rounding(const MoveEvent& event, const HeldShards& before, const HeldShards& after);

}  // namespace lockstep
