#include "consistency/place_on_mesh.h"

#include <algorithm>
#include <set>

#include "runtime/planning/plan.h"

namespace lockstep {
namespace {

std::vector<int> axes_of_several(const Mesh& mesh) {
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (mesh.axis_size(axis) > 1) axes.push_back(axis);
  return axes;
}

/// Whether a rank is wrong exactly where its coordinate on this axis is one of some.
bool tells_alone(const Mesh& mesh, const std::vector<int>& wrong, int axis) {
  std::set<int64_t> coordinates;
  for (const int rank : wrong) coordinates.insert(mesh.coordinate(rank, axis));
  return std::ranges::all_of(mesh.ranks(), [&](int rank) {
    return coordinates.contains(mesh.coordinate(rank, axis)) == (std::ranges::find(wrong, rank) != wrong.end());
  });
}

/// Or -1.
int only_axis(const Mesh& mesh, std::vector<int> axes) {
  std::erase_if(axes, [&](int axis) { return mesh.axis_size(axis) < 2; });
  return axes.size() == 1 ? axes[0] : -1;
}

int axis_of(const Mesh& mesh, const std::vector<int>& wrong, const std::vector<std::vector<int>>& hints) {
  const auto axes = axes_of_several(mesh);
  if (axes.size() == 1) return axes[0];
  if (wrong.size() < mesh.ranks().size())
    for (const int axis : axes)
      if (tells_alone(mesh, wrong, axis)) return axis;
  for (const auto& hint : hints)
    if (const int axis = only_axis(mesh, hint); axis >= 0) return axis;
  return -1;
}

template <class Fits>
std::vector<int> axes_where(const Layout& layout, const Fits& fits) {
  std::vector<int> axes;
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (fits(layout[axis])) axes.push_back(axis);
  return axes;
}

}  // namespace

std::vector<int> partial_axes(const Layout& layout) {
  return axes_where(layout, [](const Placement& placement) { return placement.is_partial(); });
}

std::vector<int> cut_axes(const Layout& layout) {
  return axes_where(layout, [](const Placement& placement) { return placement.is_shard(); });
}

std::vector<int> sharded_axes(const Plan& plan) {
  std::set<int> axes;
  for (const auto* specs : {&plan.wanted, &plan.results})
    for (const auto* spec : *specs)
      if (spec)
        for (const int axis : axes_where(spec->layout, [](const Placement& p) { return !p.is_replicate(); }))
          axes.insert(axis);
  return {axes.begin(), axes.end()};
}

const Mesh* mesh_of(const Plan& plan) {
  for (const auto* specs : {&plan.results, &plan.given})
    for (const auto* spec : *specs)
      if (spec) return &spec->layout.mesh();
  return nullptr;
}

void place_on_mesh(Blame& blame, const Mesh& mesh, const std::vector<std::vector<int>>& hints) {
  if (blame.ranks.empty()) blame.ranks = mesh.ranks();
  const int axis = axis_of(mesh, blame.ranks, hints);
  if (axis < 0) return;
  blame.axis = mesh.axes()[static_cast<size_t>(axis)].name;
  blame.group = mesh.group(blame.ranks[0], axis);
}

}  // namespace lockstep
