// What a collective makes of the parts of a sum.
#include <ATen/Functions.h>

#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/kernels/tensors/join_nodes.h"
#include "runtime/redistribution/collective.h"
#include "runtime/tensor/reduce.h"

namespace lockstep {

Shards Collective::combine(const Pieces& received) const {
  Shards result;
  for (size_t i = 0; i < received.size(); ++i) result.push_back(combine_one(i, received[i]));
  return result;
}

at::Tensor Collective::combine_one(size_t index, const std::vector<at::Tensor>& received) const {
  if (!from_.is_ordered()) return reduce(received, from_.reduction);
  Shards terms;
  for (int64_t term = 0; term < from_.terms; ++term) terms.push_back(combine_term(index, received, term));
  if (move_.after->layout.ordered_sum()) return terms.size() == 1 ? terms[0] : at::cat(terms);
  auto sum = terms[0].squeeze(0);
  for (size_t term = 1; term < terms.size(); ++term) sum = at::add(sum, terms[term].squeeze(0));
  return sum;
}

/// The nodes of one term of an ordered sum; one node where no other axis cuts it.
at::Tensor Collective::combine_term(size_t index, const std::vector<at::Tensor>& received, int64_t term) const {
  std::vector<OrderedNode> nodes;
  for (size_t m = 0; m < received.size(); ++m) {
    const auto held = sum_nodes(move_.before->layout, member_rank(index, m));
    const int64_t first = term * static_cast<int64_t>(held.size());
    for (size_t n = 0; n < held.size(); ++n)
      nodes.push_back({held[n], received[m].select(0, first + static_cast<int64_t>(n))});
  }
  auto sizes = received[0].sizes().vec();
  sizes[0] = 0;
  if (move_.after->layout.ordered_sum() && nodes.empty()) return at::empty(sizes, received[0].options());
  sizes.erase(sizes.begin());
  const RoundedLevels rounding{from_.rounded_levels, move_.before->dtype};
  return join_nodes(sum_tree(from_), nodes, received[0].options(), sizes, rounding);
}

/// All ranks live here: one tree per group, copied to its members (unless an observer may have changed what arrived).
Shards Collective::combine_once_per_group(const Pieces& received) const {
  const bool shared = mesh_.world().observers().empty();
  Shards result(received.size());
  for (size_t i = 0; i < received.size(); ++i) {
    const int first = mesh_.member(mesh_.local_ranks()[i], move_.axis, 0);
    const auto owner = static_cast<size_t>(mesh_.local_index(first));
    result[i] = shared && owner < i ? result[owner].clone() : combine_one(i, received[i]);
  }
  return result;
}

}  // namespace lockstep
