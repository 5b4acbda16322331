#pragma once
#include <rapidcheck.h>

#include "fuzz/cases/drawn.h"
#include "runtime/tensor/layout.h"

namespace lockstep::testing {

/// Axes of a random mesh: 1 to `max_axes` axes, at most `max_ranks` ranks, sizes 1 to 4.
inline rc::Gen<std::vector<MeshAxis>> mesh_axes(int max_axes, int max_ranks) {
  return rc::gen::exec([=] {
    std::vector<MeshAxis> axes;
    const int count = *rc::gen::inRange(1, max_axes + 1);
    int ranks = 1;
    for (int i = 0; i < count; ++i) {
      const int size = drawn(*rc::gen::inRange(1, std::min(5, max_ranks / ranks + 1)));
      axes.push_back({std::string(1, static_cast<char>('a' + i)), size});
      ranks *= size;
    }
    return axes;
  });
}

/// Sizes with 0 to `max_dims` dimensions of 0 to `max_size` elements, small ones first when shrinking.
inline rc::Gen<std::vector<int64_t>> sizes(int max_dims, int64_t max_size) {
  return rc::gen::exec([=] {
    const int count = *rc::gen::inRange(0, max_dims + 1);
    return *rc::gen::container<std::vector<int64_t>>(static_cast<size_t>(count),
                                                     rc::gen::inRange<int64_t>(0, max_size + 1));
  });
}

/// A random layout for a tensor of `dims` dimensions; `partial` allows P of one kind; units up to 3, any cut order.
inline Layout layout(const Mesh& mesh, int dims, bool partial) {
  Placements placements;
  const auto reduction = *rc::gen::element(Reduction::kSum, Reduction::kMax);
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const int kind = drawn(*rc::gen::inRange(0, partial ? 3 : 2));
    if (kind == 2)
      placements.push_back(Placement::partial(reduction));
    else if (kind == 1 && dims > 0)
      placements.push_back(Placement::shard(*rc::gen::inRange(0, dims), *rc::gen::inRange<int64_t>(1, 4)));
    else
      placements.push_back(Placement::replicate());
  }
  placements = with_mesh_order(placements);
  // Swap the depths of two axes that cut one dimension, sometimes.
  for (auto& a : placements)
    for (auto& b : placements)
      if (a.is_shard() && b.is_shard(a.dim) && *rc::gen::inRange(0, 4) == 3) std::swap(a.depth, b.depth);
  return Layout(mesh, placements);
}

}  // namespace lockstep::testing
