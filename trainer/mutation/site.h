#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/context/op_id.h"

namespace lockstep::trainer {

/// A place of a step where a fault can be: something that happens once in a step, the same in each.
struct Site {
  enum class Kind { kOp, kMove, kPieces, kState, kNumber, kDraw };

  Kind kind = Kind::kOp;
  OpId id = {};         ///< kOp, kMove, kPieces, kDraw; its step is 0
  int64_t ordinal = 0;  ///< kOp: which result; kMove, kPieces: how many of that id came before; kDraw: which draw
  std::string collective = {};  ///< kMove, kPieces: its kind; empty: no rank needed what another has
  std::string axis = {};        ///< kMove, kPieces
  int64_t axis_size = 1;        ///< of that axis
  std::string tensor = {};      ///< kState: "optimizer.mean.norm.weight"; kNumber: "learning_rate"
  bool is_float = true;         ///< what is there
  bool is_uneven = false;       ///< ranks hold cuts of unequal sizes
  bool is_replicated = false;   ///< kOp: several ranks hold the result alike
  bool is_reduction = false;    ///< kMove, kPieces: parts of a sum are added up

  /// "forward, layers.0.attention, linear #0", "reduce_scatter over dp_shard in backward, ..., reduce_gradients #0".
  std::string text() const;
};

/// An id without its step: the same in each.
std::string site_key(const OpId& id);

}  // namespace lockstep::trainer
