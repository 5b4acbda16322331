#include "runtime/redistribution/sent_bytes.h"

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

double nodes_of(const Layout& layout, int rank) {
  return layout.ordered_sum() ? static_cast<double>(node_count(layout, rank)) : 1;
}

}  // namespace

double sent_bytes(const Move& move, int rank) {
  const auto& from = move.before->layout[move.axis];
  const auto& to = move.after->layout[move.axis];
  if (from.is_replicate()) return 0;
  const double ranks = static_cast<double>(move.before->layout.mesh().axis_size(move.axis));
  const double held = held_elements(*move.before, rank), nodes = nodes_of(move.before->layout, rank);
  double elements = 0;
  if (to.is_replicate()) {
    const double all_reduce = nodes + nodes_of(move.after->layout, rank);
    elements = held * (from.is_shard() ? nodes * (ranks - 1) : all_reduce * (ranks - 1) / ranks);
  } else {
    const double kept =
        from.is_partial() ? held_elements(*move.after, rank) : shared_elements(*move.before, *move.after, rank);
    elements = (held - kept) * nodes;
  }
  return elements * element_bytes(*move.before);
}

double element_bytes(const TensorSpec& spec) {
  return static_cast<double>(c10::elementSize(storage(spec, Domain::kDeclared)));
}

}  // namespace lockstep
