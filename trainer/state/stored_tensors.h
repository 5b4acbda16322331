#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/box.h"
#include "models/division.h"
#include "runtime/tensor/layout.h"
#include "runtime/tensor/spec.h"
#include "trainer/optim/parameter_state.h"

/// A state as it is stored: float32, fused parameters as the tensors that they divide into, each rank's cut as a chunk,
/// copies of a cut once.
namespace lockstep::trainer {

/// A sharded tensor that is stored as several.
struct Stored {
  at::Tensor tensor;
  const models::Division& division;
  std::string prefix;  ///< of the names: "" or "optimizer.mean."

  const TensorSpec& spec() const;
  std::string name(size_t part) const { return prefix + division.parts()[part].name; }
};

std::vector<Stored> stored_tensors(const TrainingState& state);

/// Of all ranks that hold one cut, the one with coordinate 0 on every axis that does not cut stands for them.
bool stands_for_copies(const Layout& layout, int rank);

/// What a local rank holds of a tensor.
Box held_box(const TensorSpec& spec, size_t index);

/// What a shard holds of one part: a box of the part, and the shard's rows in runs.
struct Piece {
  size_t part;
  Box box;
  std::vector<models::PartRows> runs;
};

/// Of a shard with this box, in the order of the parts; none of what it holds nothing of.
std::vector<Piece> pieces_of(const models::Division& division, const Box& shard);

/// Rows of a shard, which share its bytes.
at::Tensor rows_of(const at::Tensor& shard, const Box& held, const models::PartRows& run);

/// Writes a piece into a shard: `plain` is [rows of the piece, ...], or of no dimensions.
void put(const at::Tensor& shard, const Box& held, const Piece& piece, const at::Tensor& plain);

}  // namespace lockstep::trainer
