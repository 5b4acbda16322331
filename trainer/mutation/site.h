#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/context/op_id.h"

namespace lockstep::trainer {

/// A place of a step where a fault can be: something that happens once in a step, the same in each; or of what comes
/// before a step.
struct Site {
  enum class Kind {
    kOp,        ///< what an op gives
    kOperand,   ///< a tensor that an op is about to read
    kArgument,  ///< a number that an op is given on a rank
    kMove,      ///< a tensor behind its way from one layout to another
    kPieces,    ///< what ranks receive in a collective
    kDraw,      ///< the random stream of an op
    kGradient,  ///< what a microbatch adds to a parameter's gradient
    kNumber,    ///< a number of the optimizer's step
    kState,     ///< a parameter or optimizer state, between two steps
    kBatch,     ///< tokens and labels that a step is given
    kRate,      ///< the learning rate that a step is given
    kSaved,     ///< a tensor in a checkpoint
    kMetadata,  ///< a number that a checkpoint holds
  };

  Kind kind = Kind::kOp;
  OpId id = {};           ///< of what happens in a step; its step is 0; kGradient: its microbatch alone
  int64_t ordinal = 0;    ///< kOp: which result; kMove, kPieces: how many of that id came before; kDraw: which draw;
                          ///< kOperand, kArgument: which argument
  int64_t element = -1;   ///< kOperand: which of a list
  std::string rule = {};  ///< family and dims of the op's row
  std::string collective = {};  ///< kMove, kPieces: its kind; empty: no rank needed what another has
  std::string axis = {};        ///< kMove, kPieces
  int64_t axis_size = 1;        ///< of that axis
  std::string tensor = {};      ///< "optimizer.mean.norm.weight", "learning_rate", "labels": of what is in no op
  bool is_float = true;         ///< what is there
  bool is_uneven = false;       ///< ranks hold cuts of unequal sizes
  bool is_replicated = false;   ///< kOp: several ranks hold the result alike
  bool is_partial = false;      ///< what is there is a part of a sum: no rank's value can be told to be wrong
  bool is_reduction = false;    ///< kMove, kPieces: parts of a sum are added up
  bool is_view = false;         ///< kOp: the op computes nothing

  /// "microbatch 0, forward, layers.0.attention, linear #0", "reduce_scatter on dp_shard in ..., reduce_gradients #0".
  std::string text() const;
};

/// An id without its step: the same in each.
std::string site_key(const OpId& id);

}  // namespace lockstep::trainer
