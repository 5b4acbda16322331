#pragma once
#include <rapidcheck.h>

#include <bit>
#include <functional>
#include <optional>
#include <random>

#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/transport.h"

/// Random ordered Partials, what they add up to by a plain recursion, and the property of redistributing them.
namespace lockstep::testing {

/// Summands [count, elements] of a sum in leaves of `leaf`.
template <class T>
struct Values {
  int64_t leaf, count, elements;
  std::vector<T> numbers;

  Values(int64_t leaf_size, int64_t summands, int64_t width, uint32_t seed)
      : leaf(leaf_size), count(summands), elements(width), numbers(static_cast<size_t>(summands * width)) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (auto& value : numbers) value = static_cast<T>(std::ldexp(normal(random), static_cast<int>(random() % 12)));
  }

  /// The sum of `leaves` leaves from the first one on: the left part has the largest power of two of them that leaves
  /// some to the right.
  T sum(int64_t first, int64_t leaves, int64_t element) const {
    if (leaves > 1) {
      const auto left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(leaves - 1)));
      return sum(first, left, element) + sum(first + left, leaves - left, element);
    }
    T chain = 0;
    for (int64_t i = first * leaf; i < std::min((first + leaves) * leaf, count); ++i)
      chain += numbers[static_cast<size_t>(i * elements + element)];
    return chain;
  }

  /// A node as a tensor of `sizes`.
  at::Tensor node(const SumNode& place, at::IntArrayRef sizes) const {
    const int64_t all = (count + leaf - 1) / leaf, first = place.index << place.height;
    auto tensor = at::empty(sizes, c10::CppTypeToScalarType<T>::value);
    for (int64_t e = 0; e < elements; ++e)
      tensor.template mutable_data_ptr<T>()[e] = sum(first, std::min(int64_t{1} << place.height, all - first), e);
    return tensor;
  }
};

/// 1 to 33 ranks on one to three axes.
inline std::vector<MeshAxis> draw_shards() {
  std::vector<MeshAxis> axes;
  const int count = *rc::gen::inRange(1, 4);
  int64_t left = 33;
  for (int i = 0; i < count; ++i) {
    axes.push_back({std::string(1, static_cast<char>('a' + i)), *rc::gen::inRange<int64_t>(1, left + 1)});
    left /= axes.back().size;
  }
  return axes;
}

/// A layout whose axes cut a sum between leaves, shard or replicate; at least one cuts the sum. Shards can be uneven
/// and empty.
inline Layout draw_ordered_layout(const Mesh& mesh, int dims, int64_t summands, int64_t leaf) {
  Placements placements;
  const int sure = *rc::gen::inRange(0, mesh.axis_count());
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const int kind = axis == sure ? 2 : *rc::gen::inRange(0, 4);
    if (kind >= 2)
      placements.push_back(Placement::ordered_sum(summands, leaf, leaf * *rc::gen::inRange<int64_t>(1, 4)));
    else if (kind == 1 && dims > 0)
      placements.push_back(Placement::shard(*rc::gen::inRange(0, dims), *rc::gen::inRange<int64_t>(1, 3)));
    else
      placements.push_back(Placement::replicate());
  }
  placements = with_mesh_order(placements);
  for (auto& a : placements)
    for (auto& b : placements)
      if (a.cuts() == b.cuts() && a.cuts() != Placement::kNothing && *rc::gen::inRange(0, 4) == 3)
        std::swap(a.depth, b.depth);
  return Layout(mesh, placements);
}

/// Where the sum may go: axes that cut it last first may leave it, to R, S or another Partial; others stay.
inline Layout draw_target(const Layout& source, int dims) {
  auto target = source;
  const auto cutters = source.cutters(Placement::kSummands);
  const auto stay = *rc::gen::weightedElement<size_t>({{3, 0}, {1, cutters.size() - 1}});
  for (int axis = 0; axis < source.axis_count(); ++axis) {
    const auto found = std::find(cutters.begin(), cutters.end(), axis);
    if (found != cutters.end() && static_cast<size_t>(found - cutters.begin()) < stay) continue;
    const int kind = *rc::gen::inRange(0, stay > 0 ? 2 : 4);
    const auto reduction = kind == 2 ? Reduction::kSum : Reduction::kMax;
    if (kind == 1 && dims > 0)
      target = target.with(axis, Placement::shard(*rc::gen::inRange(0, dims), *rc::gen::inRange<int64_t>(1, 3)));
    else
      target = target.with(axis, kind >= 2 ? Placement::partial(reduction) : Placement::replicate());
    if (target.mixes_reductions()) target = target.with(axis, Placement::replicate());
  }
  return target;
}

/// The shards of a layout: every rank's nodes, and its part of them.
template <class T>
at::Tensor scatter_nodes(const Values<T>& values, const Layout& layout, at::IntArrayRef sizes, c10::ScalarType dtype) {
  Shards shards;
  const auto* spec = layout.mesh().specs().intern(layout, sizes, dtype);
  for (size_t i = 0; i < layout.mesh().local_count(); ++i) {
    std::vector<at::Tensor> nodes;
    for (const auto& place : sum_nodes(layout, layout.mesh().local_ranks()[i]))
      nodes.push_back(values.node(place, sizes));
    auto shard = nodes.empty() ? at::empty(spec->local_sizes[i], c10::CppTypeToScalarType<T>::value) : at::stack(nodes);
    for (int dim = 0; dim < spec->dim_count() && !nodes.empty(); ++dim)
      shard = shard.narrow(dim + 1, spec->cut(i, dim).start, spec->cut(i, dim).length);
    shards.push_back(shard.contiguous());
  }
  return from_shards(std::move(shards), layout, sizes, dtype);
}

/// How the bytes of a redistribution move.
struct Way {
  std::function<std::shared_ptr<Transport>(uint64_t seed)> transport;  ///< none: by assignment
  Observer* observer = nullptr;                                        ///< sees what arrives
};

/// Property: an ordered sum that is cut in any way arrives, wherever it goes, as the sum of the plain recursion; and a
/// formal sum of several as theirs, added up left to right.
template <class T>
void ordered_sum_arrives(const Way& way, c10::ScalarType dtype) {
  const auto axes = draw_shards();
  World::Options options;
  if (way.transport) options.transport = way.transport(*rc::gen::arbitrary<uint64_t>());
  options.one_round_bytes = *rc::gen::element<size_t>(0, 1 << 16);
  options.numerics = lockstep::Numerics::kCanonical;
  const auto world = simulated_world(axes, options);
  const auto& mesh = world->mesh(axes);
  const auto sizes = *testing::sizes(3, 4);
  const int dims = static_cast<int>(sizes.size());
  const bool samples = *rc::gen::arbitrary<bool>();
  const auto tree = samples ? SumTree::over_samples(*rc::gen::inRange<int64_t>(1, 70))
                            : SumTree::over_elements(*rc::gen::inRange<int64_t>(1, 800));
  const auto source = draw_ordered_layout(mesh, dims, tree.size, tree.leaf);
  at::Tensor x, expected;
  const bool rounds = c10::CppTypeToScalarType<T>::value != dtype;
  for (auto terms = rounds ? 1 : *rc::gen::inRange<int64_t>(1, Placement::kMostTerms + 1); terms > 0; --terms) {
    const Values<T> values(tree.leaf, tree.size, c10::multiply_integers(sizes), *rc::gen::arbitrary<uint32_t>());
    const auto term = scatter_nodes(values, source, sizes, dtype);
    const auto whole = values.node({tree.height, 0}, sizes);
    x = x.defined() ? at::add(x, term) : term;
    expected = expected.defined() ? at::add(expected, whole) : whole;
  }
  const auto target = draw_target(layout_of(x), dims);
  RC_LOG() << mesh.text() << " " << layout_of(x).text() << " -> " << target.text() << " of " << c10::str(sizes);
  std::optional<ObserverScope> scope;
  if (way.observer) scope.emplace(world->observers(), *way.observer);
  const auto moved = redistribute(x, target);
  RC_ASSERT(layout_of(moved) == without_idle_units(target, sizes));
  scope.reset();
  const auto whole = gather(moved);
  RC_ASSERT(same_bits(whole, expected.to(whole.scalar_type())));
}

}  // namespace lockstep::testing
