// What a move makes of the parts of a sum.
#include <ATen/Functions.h>

#include "runtime/kernels/tensors/join_nodes.h"
#include "runtime/redistribution/collective_parts.h"
#include "runtime/tensor/reduce.h"

namespace lockstep {
namespace {

const Mesh& mesh_of(const Move& move) { return move.before->layout.mesh(); }
const Placement& partial_of(const Move& move) { return move.before->layout[move.axis]; }

/// A member of the group of local rank `index`.
int member_rank(const Move& move, size_t index, size_t member) {
  return mesh_of(move).member(mesh_of(move).local_ranks()[index], move.axis, static_cast<int64_t>(member));
}

/// What all members hold of one term of an ordered sum.
std::vector<OrderedNode> nodes_of_term(const Move& move, size_t index, const std::vector<at::Tensor>& received,
                                       int64_t term) {
  std::vector<OrderedNode> nodes;
  for (size_t m = 0; m < received.size(); ++m) {
    const auto held = sum_nodes(move.before->layout, member_rank(move, index, m));
    const int64_t first = term * static_cast<int64_t>(held.size());
    for (size_t n = 0; n < held.size(); ++n)
      nodes.push_back({held[n], received[m].select(0, first + static_cast<int64_t>(n))});
  }
  return nodes;
}

/// The nodes of one term of an ordered sum; one node where no other axis cuts it.
at::Tensor combine_term(const Move& move, size_t index, const std::vector<at::Tensor>& received, int64_t term) {
  const auto nodes = nodes_of_term(move, index, received, term);
  auto sizes = received[0].sizes().vec();
  sizes[0] = 0;
  if (move.after->layout.ordered_sum() && nodes.empty()) return at::empty(sizes, received[0].options());
  sizes.erase(sizes.begin());
  const auto& from = partial_of(move);
  const RoundedLevels rounding{from.rounded_levels, move.before->dtype};
  return join_nodes(sum_tree(from), nodes, received[0].options(), sizes, rounding);
}

}  // namespace

at::Tensor combine_one(const Move& move, size_t index, const std::vector<at::Tensor>& received) {
  const auto& from = partial_of(move);
  if (!from.is_ordered()) return reduce(received, from.reduction);
  Shards terms;
  for (int64_t term = 0; term < from.terms; ++term) terms.push_back(combine_term(move, index, received, term));
  if (move.after->layout.ordered_sum()) return terms.size() == 1 ? terms[0] : at::cat(terms);
  auto sum = terms[0].squeeze(0);
  for (size_t term = 1; term < terms.size(); ++term) sum = at::add(sum, terms[term].squeeze(0));
  return sum;
}

Shards combine(const Move& move, const Pieces& received) {
  Shards result;
  for (size_t i = 0; i < received.size(); ++i) result.push_back(combine_one(move, i, received[i]));
  return result;
}

}  // namespace lockstep
