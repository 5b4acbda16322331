#pragma once
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/tensor/domain.h"
#include "runtime/tensor/layout.h"

namespace lockstep {

/// How few of a tensor's elements are stored. The first `cells` dimensions of packed rows number cells, and of each
/// cell there is a row, the other dimensions, or none: which ones is a part of the value (ShardSet::present()). A shard
/// is [rows, ...]: those of its cells, in their order. Absent rows are read as 0. (Tokens of experts: cells are
/// [sample, expert, position], and of each position the experts that it chose are present.)
struct Packing {
  int cells = 0;     ///< 0: all elements are stored
  int64_t rows = 0;  ///< of the whole tensor, at the most: what costs are estimated from

  bool operator==(const Packing&) const = default;
};

/// Everything about a sharded tensor but its values: interned, so that equal specs are one pointer.
struct TensorSpec {
  Layout layout;                        ///< units that change nothing about the cut are 1
  std::vector<int64_t> sizes, strides;  ///< of the global tensor
  c10::ScalarType dtype;                ///< as declared; see storage()
  /// Of the shards, per local rank, in the order of Mesh::local_ranks(). Shards of an ordered Partial have
  /// one dimension more in front: the nodes of sum_nodes(), left to right, of one term after the other. The number of
  /// packed rows is kAnyRows.
  std::vector<std::vector<int64_t>> local_sizes;
  Packing packing = {};
  bool any_partial = false, all_replicate = true;
  bool holds_rounded = false;  ///< an ordered Partial of which every rank's nodes are rounded to `dtype`
  double nodes_per_rank = 1;   ///< of an ordered sum, the mean over ranks
  uint64_t digest = 0;         ///< of sizes, dtype and placements: what all ranks know alike

  static constexpr int64_t kAnyRows = -1;
  bool is_packed() const { return packing.cells > 0; }
  /// The sizes of a shard where no values are: of packed rows as many as it is to expect.
  std::vector<int64_t> expected_sizes(size_t index) const;

  int64_t dim_count() const { return static_cast<int64_t>(sizes.size()); }
  int64_t element_count() const;
  /// Bytes of the whole tensor in its declared dtype.
  double bytes() const;
  /// What local rank `index` holds of dimension `dim`.
  Range cut(size_t index, int dim) const;
  /// "f32[8,4] [tp=S(0)]"
  std::string text() const;
};

/// The dtype of a spec's shards: sums that are not finished are kept in a wider one, unless their nodes are rounded.
c10::ScalarType storage(const TensorSpec& spec, Domain domain);
/// In the domain of the spec's world.
c10::ScalarType storage(const TensorSpec& spec);

/// The specs of one mesh. They live as long as the mesh.
class SpecTable {
 public:
  explicit SpecTable(const Mesh& mesh) : mesh_(&mesh) {}

  /// Throws BadInput if the layout shards a dimension that the sizes do not have, or cuts cells of what is not packed.
  const TensorSpec* intern(const Layout& layout, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                           c10::ScalarType dtype, const Packing& packing = {});

  /// Contiguous strides.
  const TensorSpec* intern(const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype,
                           const Packing& packing = {});

 private:
  std::unique_ptr<TensorSpec> make(Layout layout, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                   c10::ScalarType dtype, const Packing& packing) const;

  const Mesh* mesh_;
  std::unordered_map<std::string, std::unique_ptr<TensorSpec>> specs_;
};

/// The tree of an ordered Partial.
SumTree sum_tree(const Placement& placement);

/// The nodes of an ordered Partial's tree that `rank` has added up, of each term. REQUIRES: layout.ordered_sum().
std::vector<SumNode> sum_nodes(const Layout& layout, int rank);
/// How many that are, of all terms.
int64_t node_count(const Layout& layout, int rank);

/// `layout` with every unit replaced by the least that cuts `sizes` alike: 1 where the unit changes nothing.
Layout without_idle_units(Layout layout, c10::IntArrayRef sizes);

/// The same spec with another layout and contiguous strides.
const TensorSpec* with_layout(const TensorSpec& spec, const Layout& layout);

}  // namespace lockstep
