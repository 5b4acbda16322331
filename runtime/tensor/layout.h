#pragma once
#include <c10/util/SmallVector.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/range.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/placement.h"

namespace lockstep {

using Placements = c10::SmallVector<Placement, 4>;

/// How a tensor lies on a mesh: one placement per mesh axis. Text form: "[dp_shard=S(0), tp=R]".
///
/// Where several axes cut one dimension, the placements' depths say in which order; a layout that is built without
/// depths gets mesh order. Layouts know no sizes: they fit every tensor with enough dimensions.
class Layout {
 public:
  /// Throws BadInput if the count is not the mesh's number of axes, the depths of a dimension are not 0, 1, ...,
  /// or Partials of different kinds stand side by side (sum and avg may).
  Layout(const Mesh& mesh, Placements placements);

  /// All axes Replicate.
  static Layout replicated(const Mesh& mesh);

  /// The inverse of text(). Axes that are not named are R. Throws BadInput.
  static Layout parse(const Mesh& mesh, std::string_view text);

  const Mesh& mesh() const { return *mesh_; }
  const Placement& operator[](int axis) const { return placements_[static_cast<size_t>(axis)]; }
  int axis_count() const { return static_cast<int>(placements_.size()); }
  const Placements& placements() const { return placements_; }

  bool all_replicate() const;
  bool any_partial() const;
  /// Partials that do not commute (a sum beside a maximum): such a layout has no meaning and is never made.
  bool mixes_reductions() const;

  /// The axes that cut a dimension (or Placement::kSummands), first cut first.
  c10::SmallVector<int, 4> cutters(int what) const;

  /// What `rank` holds of a dimension (or of the summands) of `size` elements.
  Range cut(int rank, int what, int64_t size) const;

  /// The placement of an axis that cuts an ordered sum; null if there is none. All of them cut the same sum.
  const Placement* ordered_sum() const;
  /// Whether that is a sum of several sums, each with nodes of its own.
  bool is_formal_sum() const { return ordered_sum() && ordered_sum()->terms > 1; }
  /// The summands that `rank` has added up. REQUIRES: ordered_sum().
  Range summands(int rank) const;

  /// The same layout with one axis changed; a new shard cuts last, the remaining cutters keep their order.
  Layout with(int axis, const Placement& placement) const;

  std::string text() const;

  bool operator==(const Layout& other) const { return mesh_ == other.mesh_ && placements_ == other.placements_; }

 private:
  const Mesh* mesh_;
  Placements placements_;
};

/// Several axes that cut one dimension get their depths in mesh order.
Placements with_mesh_order(Placements placements);

}  // namespace lockstep
