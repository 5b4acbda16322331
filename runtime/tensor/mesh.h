#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/mesh_text.h"

namespace lockstep {

class Ranks;
class SpecTable;
class World;

/// The ranks of a group that differ only in their coordinate on one axis, in the order of that coordinate.
using RankGroup = std::vector<int>;

/// One end of a way between two coordinates of an axis of a whole mesh: what travels has both in its group, first
/// `from`, then `to`.
struct TransferEnd {
  int axis = -1;                    ///< of the whole mesh
  std::vector<int64_t> fixed = {};  ///< per axis of the whole mesh: the coordinate that both ends have, or -1
  int64_t from = 0, to = 0;
  bool receives = false;  ///< the ranks at `to`, not those at `from`

  friend bool operator==(const TransferEnd&, const TransferEnd&) = default;
};

/// An n-dimensional array of ranks with named axes; the last axis varies fastest. A mesh without axes has one rank.
/// Immutable; owned by its World, and alive as long as the World is. Get one from World::mesh() or submesh().
///
/// A whole mesh has the ranks 0..n-1 of its World. A submesh has those whose coordinates on some axes of a whole mesh
/// are given; the other axes are its own. Ranks keep their numbers: everywhere a rank is a rank of the World. A tensor
/// on a submesh has shards on its ranks only. A process that has none of them runs the same ops, on zero shards, or
/// leaves them out; asking for a value there is an error.
class Mesh {
 public:
  /// The whole mesh. Throws BadInput for a repeated or empty axis name or a size below one.
  Mesh(Ranks& ranks, std::vector<MeshAxis> axes);
  /// The part of a whole mesh where each axis that is `fixed` (one entry per axis, -1 = free) has that coordinate.
  Mesh(const Mesh& whole, std::vector<int64_t> fixed);
  /// The ranks at one end of a way. Its axis has two coordinates, of which these ranks have one. REQUIRES: from != to.
  Mesh(const Mesh& whole, const TransferEnd& end);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  World& world() const;
  /// All ranks of the World.
  Ranks& all() const { return *all_; }
  int rank_count() const { return static_cast<int>(ranks_.size()); }
  /// In the order of their coordinates.
  const std::vector<int>& ranks() const { return ranks_; }
  int axis_count() const { return static_cast<int>(axes_.size()); }
  int64_t axis_size(int axis) const { return axes_[static_cast<size_t>(axis)].size; }
  const std::vector<MeshAxis>& axes() const { return axes_; }

  /// Position of the axis of this name, or -1.
  int find_axis(std::string_view name) const;

  /// Those of Ranks::local() that are on this mesh, in their order: the owners of the shards.
  const std::vector<int>& local_ranks() const { return local_ranks_; }
  size_t local_count() const { return local_ranks_.size(); }
  /// Position in local_ranks(), or -1.
  int local_index(int rank) const { return local_index_[static_cast<size_t>(rank)]; }

  /// The ranks whose coordinate on the axis of this name is given; the other axes remain. The same object for the same
  /// part of the same whole mesh. Throws BadInput.
  const Mesh& submesh(std::string_view axis, int64_t coordinate) const;
  /// The submesh of these axes that `rank` is on. Throws BadInput.
  const Mesh& submesh(const std::vector<std::string>& axes, int rank) const;
  /// This, or the whole mesh that this is a part of.
  const Mesh& whole() const { return whole_ ? *whole_ : *this; }
  /// Per axis of whole(): its coordinate here, or -1; of the end of a way -1 for the axis of that, too.
  const std::vector<int64_t>& fixed() const { return fixed_; }
  /// Of a mesh that is one: its axis is -1 otherwise.
  const TransferEnd& transfer_end() const { return end_; }
  /// The axis of this mesh along which it is one end.
  int transfer_axis() const { return end_axis_; }
  bool is_transfer_end() const { return end_.axis >= 0; }

  /// Coordinate of `rank`, which is on this mesh, on `axis`.
  int64_t coordinate(int rank, int axis) const;

  /// The rank of the group of `rank` along `axis` with this coordinate.
  int member(int rank, int axis, int64_t coordinate) const;
  /// The group along `axis` that `rank` belongs to.
  RankGroup group(int rank, int axis) const;

  /// "dp_shard=2,tp=2"; "one device" for a mesh without axes; "pp=2,tp=2 at pp=1" for a submesh. World::mesh(text) is
  /// the inverse. "pp=2,tp=2 at pp=0 to pp=1" and "... at pp=1 from pp=0" are the ends of a way; with what both ends
  /// fix, "pp=2,cp=3 at pp=0,cp=1 to cp=2".
  std::string text() const;

  /// Number of the next collective on this mesh; equal on all its ranks, because all of them run one program.
  uint64_t next_collective() const { return collective_++; }

  SpecTable& specs() const { return *specs_; }

 private:
  bool agrees(int rank, const std::vector<int64_t>& fixed) const;
  void find_local_ranks();

  Ranks* all_;
  std::vector<MeshAxis> axes_;
  std::vector<int> strides_;  ///< between the ranks of neighbours on an axis
  const Mesh* whole_ = nullptr;
  std::vector<int64_t> fixed_;
  TransferEnd end_;
  int end_axis_ = -1;
  std::vector<int> ranks_, local_ranks_, local_index_;
  mutable uint64_t collective_ = 0;
  std::unique_ptr<SpecTable> specs_;
};

}  // namespace lockstep
