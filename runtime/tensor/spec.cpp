#include "runtime/tensor/spec.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "runtime/tensor/ranks.h"

namespace lockstep {
namespace {

void append(std::string& key, int64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); }

void append(std::string& key, c10::IntArrayRef values) {
  append(key, static_cast<int64_t>(values.size()));
  for (const int64_t value : values) append(key, value);
}

std::string key_of(const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype, const Packing& packing) {
  std::string key;
  key.reserve(128);
  append(key, static_cast<int64_t>(dtype));
  append(key, packing.cells);
  append(key, packing.rows);
  append(key, sizes);
  for (const auto& p : layout.placements()) {
    append(key, static_cast<int64_t>(p.kind) << 48 | static_cast<int64_t>(p.reduction) << 40 |
                    static_cast<int64_t>(p.depth) << 32 | p.dim);
    append(key, p.unit);
    append(key, p.summands);
    append(key, p.leaf);
    append(key, p.terms);
    append(key, p.rounded_levels);
  }
  return key;
}

/// Ranks that differ on other axes only have the same summands.
bool is_first_of_its_kind(const Layout& layout, int rank) {
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (!layout[axis].is_ordered() && layout.mesh().coordinate(rank, axis) != 0) return false;
  return true;
}

double mean_nodes(const Layout& layout) {
  if (!layout.ordered_sum()) return 1;
  int64_t nodes = 0, ranks = 0;
  for (const int rank : layout.mesh().ranks()) {
    if (!is_first_of_its_kind(layout, rank)) continue;
    nodes += node_count(layout, rank);
    ++ranks;
  }
  return static_cast<double>(nodes) / static_cast<double>(ranks);
}

bool all_nodes_are_rounded(const Layout& layout) {
  const auto* sum = layout.ordered_sum();
  if (!sum || sum->rounded_levels == 0) return false;
  const auto lowest = sum_tree(*sum).height - sum->rounded_levels;
  for (const int rank : layout.mesh().ranks())
    for (const auto& node : sum_nodes(layout, rank))
      if (node.height < lowest) return false;
  return true;
}

/// The lengths of the ranges that `axis` cuts: what the axes before it leave.
std::set<int64_t> lengths_before(Layout layout, int axis, int64_t size) {
  const int what = layout[axis].cuts();
  while (layout[axis].cuts() == what) layout = layout.with(layout.cutters(what).back(), Placement::replicate());
  std::set<int64_t> lengths;
  for (const int rank : layout.mesh().ranks()) lengths.insert(layout.cut(rank, what, size).length);
  return lengths;
}

/// What the first of `ranks` gets of a range.
int64_t first_cut(int64_t length, int64_t unit, int64_t ranks) {
  const int64_t units = (length + unit - 1) / unit;
  return std::min((units + ranks - 1) / ranks * unit, length);
}

/// The least unit that cuts alike: equal cuts have equal layouts, wherever their units came from.
Layout with_least_unit(const Layout& layout, int axis, int64_t size) {
  const auto lengths = lengths_before(layout, axis, size);
  const int64_t given = layout[axis].unit, ranks = layout.mesh().axis_size(axis);
  const auto cuts_alike = [&](int64_t unit) {
    return std::all_of(lengths.begin(), lengths.end(), [&](int64_t length) {
      return first_cut(length, unit, ranks) == first_cut(length, given, ranks);
    });
  };
  int64_t unit = 1;
  while (unit < given && !cuts_alike(unit)) ++unit;
  auto placements = layout.placements();
  placements[static_cast<size_t>(axis)].unit = unit;
  return Layout(layout.mesh(), std::move(placements));
}

std::string list(c10::IntArrayRef values) {
  std::string text;
  for (const int64_t value : values) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
  return "[" + text + "]";
}

/// G(d) where a dimension numbers cells, S(d) elsewhere.
Layout named_by_cells(const Layout& layout, c10::IntArrayRef sizes, const Packing& packing) {
  auto placements = layout.placements();
  for (auto& placement : placements) {
    const bool of_cells = placement.is_shard() && placement.dim < packing.cells;
    if (placement.of_cells && !of_cells)
      fail<BadInput>("layout {}: G({}) cuts cells of packed rows, and a tensor of sizes {} has {}; write S({})",
                     layout.text(), placement.dim, list(sizes),
                     packing.cells > 0 ? fmt::format("{} dimensions of cells", packing.cells) : "none", placement.dim);
    placement.of_cells = of_cells;
  }
  return Layout(layout.mesh(), std::move(placements));
}

/// Complex numbers have no order: their maximum would fail only where it is read.
void require_order(const Layout& layout, c10::ScalarType dtype) {
  if (!c10::isComplexType(dtype)) return;
  for (const auto& p : layout.placements())
    if (p.is_partial() && (p.reduction == Reduction::kMax || p.reduction == Reduction::kMin))
      fail<BadInput>("layout {}: {} has no order; a Partial of it is a sum or a product", layout.text(),
                     c10::toString(dtype));
}

}  // namespace

int64_t TensorSpec::element_count() const {
  if (!is_packed()) return c10::multiply_integers(sizes);
  return packing.rows * c10::multiply_integers(sizes.begin() + packing.cells, sizes.end());
}

std::vector<int64_t> TensorSpec::expected_sizes(size_t index) const {
  auto result = local_sizes[index];
  if (!is_packed()) return result;
  double share = 1;
  for (int dim = 0; dim < packing.cells; ++dim)
    share *= static_cast<double>(cut(index, dim).length) /
             static_cast<double>(std::max<int64_t>(sizes[static_cast<size_t>(dim)], 1));
  *std::find(result.begin(), result.end(), kAnyRows) = std::llround(static_cast<double>(packing.rows) * share);
  return result;
}

double TensorSpec::bytes() const {
  return static_cast<double>(element_count()) * static_cast<double>(c10::elementSize(dtype));
}

Range TensorSpec::cut(size_t index, int dim) const {
  return layout.cut(layout.mesh().local_ranks()[index], dim, sizes[static_cast<size_t>(dim)]);
}

std::string TensorSpec::text() const {
  const auto packed =
      is_packed() ? fmt::format(" rows of {} cells", list({sizes.data(), static_cast<size_t>(packing.cells)})) : "";
  return fmt::format("{}{}{} {}", c10::toString(dtype), list(sizes), packed, layout.text());
}

c10::ScalarType storage(const TensorSpec& spec, Domain domain) {
  const bool is_wide = spec.any_partial && !spec.holds_rounded;
  return is_wide ? accumulation(domain, spec.dtype) : stored(domain, spec.dtype);
}

c10::ScalarType storage(const TensorSpec& spec) { return storage(spec, spec.layout.mesh().all().domain()); }

SumTree sum_tree(const Placement& placement) { return SumTree{placement.summands, placement.leaf}; }

std::vector<SumNode> sum_nodes(const Layout& layout, int rank) {
  const auto held = layout.summands(rank);
  const auto tree = sum_tree(*layout.ordered_sum());
  if (!tree.is_boundary(held.start) || !tree.is_boundary(held.start + held.length))
    fail<BadInput>(
        "layout {} gives rank {} the summands from {} to {}, which end inside a leaf of {}; cut in units of "
        "whole leaves",
        layout.text(), rank, held.start, held.start + held.length, tree.leaf);
  return cover(sum_tree(*layout.ordered_sum()), held.start, held.length);
}

int64_t node_count(const Layout& layout, int rank) {
  return layout.ordered_sum()->terms * static_cast<int64_t>(sum_nodes(layout, rank).size());
}

Layout without_idle_units(Layout layout, c10::IntArrayRef sizes) {
  for (int axis = 0; axis < layout.axis_count(); ++axis) {
    const auto placement = layout[axis];
    if (placement.cuts() == Placement::kNothing || placement.unit == 1) continue;
    const int64_t size = placement.is_shard() ? sizes[static_cast<size_t>(placement.dim)] : placement.summands;
    layout = with_least_unit(layout, axis, size);
  }
  return layout;
}

const TensorSpec* with_layout(const TensorSpec& spec, const Layout& layout) {
  return layout.mesh().specs().intern(layout, spec.sizes, spec.dtype, spec.packing);
}

const TensorSpec* SpecTable::intern(const Layout& layout, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                    c10::ScalarType dtype, const Packing& packing) {
  LOCKSTEP_CHECK(&layout.mesh() == mesh_, "layout {} belongs to another mesh", layout.text());
  auto key = key_of(layout, sizes, dtype, packing);
  append(key, strides);
  auto& entry = specs_[std::move(key)];
  if (entry) return entry.get();
  auto spec = make(layout, sizes, strides, dtype, packing);
  if (spec->layout == layout) return (entry = std::move(spec)).get();
  return intern(spec->layout, sizes, strides, dtype, packing);
}

const TensorSpec* SpecTable::intern(const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype,
                                    const Packing& packing) {
  return intern(layout, sizes, at::detail::defaultStrides(sizes), dtype, packing);
}

std::unique_ptr<TensorSpec> SpecTable::make(Layout layout, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                            c10::ScalarType dtype, const Packing& packing) const {
  const auto dims = static_cast<int>(sizes.size());
  for (const auto& p : layout.placements())
    if (p.is_shard() && (p.dim < 0 || p.dim >= dims))
      fail<BadInput>("layout {} shards dimension {} of a tensor of sizes {}", layout.text(), p.dim, list(sizes));
  require_order(layout, dtype);
  auto spec = std::make_unique<TensorSpec>(
      TensorSpec{named_by_cells(without_idle_units(std::move(layout), sizes), sizes, packing),
                 sizes.vec(),
                 strides.vec(),
                 dtype,
                 {},
                 packing});
  spec->any_partial = spec->layout.any_partial();
  spec->all_replicate = spec->layout.all_replicate();
  spec->holds_rounded = all_nodes_are_rounded(spec->layout);
  spec->nodes_per_rank = mean_nodes(spec->layout);
  const auto key = key_of(spec->layout, sizes, dtype, packing);
  spec->digest = XXH3_64bits(key.data(), key.size());
  for (const int rank : mesh_->local_ranks()) {
    auto& local = spec->local_sizes.emplace_back();
    if (spec->layout.ordered_sum()) local.push_back(node_count(spec->layout, rank));
    if (packing.cells > 0) local.push_back(TensorSpec::kAnyRows);
    for (int dim = packing.cells; dim < dims; ++dim)
      local.push_back(spec->layout.cut(rank, dim, sizes[static_cast<size_t>(dim)]).length);
  }
  return spec;
}

}  // namespace lockstep
