#include "runtime/sent_bytes.h"

#include <algorithm>

namespace lockstep {
namespace {

Range cut(const TensorSpec& spec, int rank, int dim) {
  return spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]);
}

/// Elements of the box that `rank` holds of both specs (one tensor in two layouts).
double shared_elements(const TensorSpec& a, const TensorSpec& b, int rank) {
  double elements = 1;
  for (int dim = 0; dim < a.dim_count(); ++dim) {
    const auto x = cut(a, rank, dim), y = cut(b, rank, dim);
    const auto length = std::min(x.start + x.length, y.start + y.length) - std::max(x.start, y.start);
    elements *= static_cast<double>(std::max<int64_t>(length, 0));
  }
  return elements;
}

double held_elements(const TensorSpec& spec, int rank) { return shared_elements(spec, spec, rank); }

/// The mean of held_elements() over the mesh.
double even_elements(const TensorSpec& spec) {
  auto elements = static_cast<double>(spec.element_count());
  for (int axis = 0; axis < spec.layout.axis_count(); ++axis)
    if (spec.layout[axis].is_shard()) elements /= static_cast<double>(spec.layout.mesh().axis_size(axis));
  return elements;
}

}  // namespace

double sent_bytes(const Move& move, int rank) {
  const auto& from = move.before->layout[move.axis];
  const auto& to = move.after->layout[move.axis];
  const double even = even_elements(*move.before), held = held_elements(*move.before, rank);
  const double mean = wire_bytes({move});
  if (mean <= 0 || even <= 0) return 0;
  if (to.is_replicate()) return mean * held / even;
  const double ranks = static_cast<double>(move.before->layout.mesh().axis_size(move.axis));
  const double kept =
      from.is_partial() ? held_elements(*move.after, rank) : shared_elements(*move.before, *move.after, rank);
  return mean * (held - kept) / (even * (ranks - 1) / ranks);
}

}  // namespace lockstep
