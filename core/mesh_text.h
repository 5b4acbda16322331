#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The text form of meshes: "dp_shard=2,tp=2"; with what a part of a mesh fixes: "pp=2,tp=2 at pp=1".
namespace lockstep {

/// No mesh has more ranks.
inline constexpr int64_t kMaxRanks = 1 << 20;

/// One named axis of a mesh, for example {"tp", 2}.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

/// A mesh text, read: the axes of the whole mesh, and the coordinates that a part of it fixes.
struct MeshText {
  std::vector<MeshAxis> axes;
  std::vector<std::pair<std::string, int64_t>> at;
};

/// Reads "dp_shard=2,tp=2" or "pp=2,tp=2 at pp=1" (spaces allowed; "" and "one device" have no axes). Names are words
/// of letters, digits and underscores, each given once. Throws BadInput.
MeshText parse_mesh_text(std::string_view text);

/// The axes of a whole mesh. Throws BadInput, also for a part of a mesh.
std::vector<MeshAxis> parse_mesh_axes(std::string_view text);

/// The mesh texts of a list "tp=2; dp_shard=2,tp=2", without the spaces around them.
std::vector<std::string_view> split_mesh_list(std::string_view text);

/// The inverse of parse_mesh_axes: "one device" without axes.
std::string to_text(const std::vector<MeshAxis>& axes);

/// The product of the sizes. Throws BadInput for more than kMaxRanks.
int64_t rank_count(const std::vector<MeshAxis>& axes);

}  // namespace lockstep
