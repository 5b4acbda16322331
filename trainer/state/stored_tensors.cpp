#include "trainer/state/stored_tensors.h"

#include <ATen/Functions.h>

#include "runtime/plain/lazy_copy.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {

const TensorSpec& Stored::spec() const { return spec_of(tensor); }

std::vector<Stored> stored_tensors(const TrainingState& state) {
  std::vector<Stored> all;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) all.push_back(Stored{tensor, entry.division, prefix});
  return all;
}

bool stands_for_copies(const Layout& layout, int rank) {
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (!layout[axis].is_shard() && layout.mesh().coordinate(rank, axis) != 0) return false;
  return true;
}

Box held_box(const TensorSpec& spec, size_t index) {
  Box box;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    box.offset.push_back(range.start);
    box.size.push_back(range.length);
  }
  return box;
}

/// The parts' rows in a shard are consecutive rows of each part, because parts keep their order.
std::vector<Piece> pieces_of(const models::Division& division, const Box& shard) {
  std::vector<Piece> pieces;
  for (size_t part = 0; shard.elements() > 0 && part < division.parts().size(); ++part) {
    if (shard.size.empty()) return {{0, shard, {{0, 0, 1}}}};
    auto runs = division.rows_of(part, shard.offset[0], shard.size[0]);
    if (runs.empty()) continue;
    Box box = shard;
    box.offset[0] = runs.front().part_row;
    box.size[0] = runs.back().part_row + runs.back().count - box.offset[0];
    pieces.push_back({part, std::move(box), std::move(runs)});
  }
  return pieces;
}

at::Tensor rows_of(const at::Tensor& shard, const Box& held, const models::PartRows& run) {
  return held.size.empty() ? shard : shard.narrow(0, run.row - held.offset[0], run.count);
}

void put(const at::Tensor& shard, const Box& held, const Piece& piece, const at::Tensor& plain) {
  before_write(shard);
  int64_t next = 0;
  for (const auto& run : piece.runs) {
    rows_of(shard, held, run).copy_(held.size.empty() ? plain : plain.narrow(0, next, run.count));
    next += run.count;
  }
}

}  // namespace lockstep::trainer
