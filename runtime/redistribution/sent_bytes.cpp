#include "runtime/redistribution/sent_bytes.h"

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

Range cut(const TensorSpec& spec, int rank, int dim) {
  return spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]);
}

/// How many of its elements a tensor stores: of packed rows as many of all cells as there are to expect.
double stored_share(const TensorSpec& spec) {
  const auto all = static_cast<double>(c10::multiply_integers(spec.sizes));
  return all > 0 ? static_cast<double>(spec.element_count()) / all : 1;
}

/// Elements of the box that `rank` holds of both specs (one tensor in two layouts).
double shared_elements(const TensorSpec& a, const TensorSpec& b, int rank) {
  double elements = stored_share(a);
  for (int dim = 0; dim < a.dim_count(); ++dim) {
    elements *= static_cast<double>(cut(a, rank, dim).overlap(cut(b, rank, dim)).length);
  }
  return elements;
}

double held_elements(const TensorSpec& spec, int rank) { return shared_elements(spec, spec, rank); }

double nodes_of(const Layout& layout, int rank) {
  return layout.ordered_sum() ? static_cast<double>(node_count(layout, rank)) : 1;
}

/// The ranks' mean: cuts share the elements out, the other axes repeat them.
double mean_elements(const TensorSpec& spec) {
  double parts = 1;
  for (int axis = 0; axis < spec.layout.axis_count(); ++axis)
    if (spec.layout[axis].is_shard()) parts *= static_cast<double>(spec.layout.mesh().axis_size(axis));
  return static_cast<double>(spec.element_count()) / parts;
}

double group_size(const Move& move) { return static_cast<double>(move.before->layout.mesh().axis_size(move.axis)); }

}  // namespace

double sent(const Placement& from, const Placement& to, double ranks, const Held& held) {
  if (from.is_replicate()) return 0;
  if (!to.is_replicate()) return (held.before - held.after) * held.nodes_before;
  if (from.is_shard()) return held.before * held.nodes_before * (ranks - 1);
  return held.before * (held.nodes_before + held.nodes_after) * (ranks - 1) / ranks;
}

double sent_bytes(const Move& move, int rank) {
  const auto &from = move.before->layout[move.axis], &to = move.after->layout[move.axis];
  const double after =
      from.is_partial() ? held_elements(*move.after, rank) : shared_elements(*move.before, *move.after, rank);
  const Held held{held_elements(*move.before, rank), after, nodes_of(move.before->layout, rank),
                  nodes_of(move.after->layout, rank)};
  return sent(from, to, group_size(move), held) * element_bytes(*move.before);
}

/// Ranks hold different numbers of nodes of an ordered sum, and keep different parts of a shard that is cut otherwise.
/// Of all else the mean over ranks is that of what they hold.
double mean_sent_bytes(const Move& move) {
  const auto &from = move.before->layout[move.axis], &to = move.after->layout[move.axis];
  if (!move.before->layout.ordered_sum() && !(from.is_shard() && to.is_shard()))
    return sent(from, to, group_size(move), {mean_elements(*move.before), mean_elements(*move.after)}) *
           element_bytes(*move.before);
  const auto& ranks = move.before->layout.mesh().ranks();
  const auto add = [&](double sum, int rank) { return sum + sent_bytes(move, rank); };
  return std::accumulate(ranks.begin(), ranks.end(), 0.0, add) / static_cast<double>(ranks.size());
}

double element_bytes(const TensorSpec& spec) {
  return static_cast<double>(c10::elementSize(storage(spec, Domain::kDeclared)));
}

}  // namespace lockstep
