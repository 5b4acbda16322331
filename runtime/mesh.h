#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class World;
class SpecTable;

/// One named axis of a mesh, for example {"tp", 2}.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

/// The ranks of a group that differ only in their coordinate on one axis, in the order of that coordinate.
using RankGroup = std::vector<int>;

/// An n-dimensional array of the ranks 0..n-1 with named axes; the last axis varies fastest. A mesh without axes has
/// one rank. Immutable; owned by its World, and alive as long as the World is.
class Mesh {
 public:
  /// Throws BadInput for a repeated or empty axis name or a size below one.
  Mesh(World& world, std::vector<MeshAxis> axes);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  World& world() const { return *world_; }
  int rank_count() const { return rank_count_; }
  int axis_count() const { return static_cast<int>(axes_.size()); }
  int64_t axis_size(int axis) const { return axes_[static_cast<size_t>(axis)].size; }
  const std::vector<MeshAxis>& axes() const { return axes_; }

  /// Position of the axis of this name, or -1.
  int find_axis(std::string_view name) const;

  /// Coordinate of `rank` on `axis`.
  int64_t coordinate(int rank, int axis) const;

  /// The group along `axis` that `rank` belongs to.
  RankGroup group(int rank, int axis) const;

  /// "dp_shard=2,tp=2"; "one device" for a mesh of one rank.
  std::string text() const;

  SpecTable& specs() const { return *specs_; }

 private:
  World* world_;
  std::vector<MeshAxis> axes_;
  std::vector<int> strides_;
  int rank_count_ = 1;
  std::unique_ptr<SpecTable> specs_;
};

/// Parses "dp_shard=2,tp=2" (spaces allowed; "" and "one device" are the mesh of one rank). Throws BadInput.
std::vector<MeshAxis> parse_mesh_axes(std::string_view text);

/// Parses a list "tp=2; dp_shard=2,tp=2".
std::vector<std::vector<MeshAxis>> parse_mesh_list(std::string_view text);

/// The inverse of parse_mesh_axes.
std::string to_text(const std::vector<MeshAxis>& axes);

}  // namespace lockstep
