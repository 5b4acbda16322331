#include "runtime/mesh.h"

#include <charconv>

#include "core/error.h"
#include "runtime/spec.h"

namespace lockstep {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(trim(text.substr(begin, end - begin)));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

MeshAxis parse_axis(std::string_view text) {
  const auto equals = text.find('=');
  MeshAxis axis;
  const auto digits = equals == std::string_view::npos ? std::string_view{} : trim(text.substr(equals + 1));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), axis.size);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
    fail<BadInput>("mesh axis '{}' should read name=size, for example tp=2", text);
  axis.name = trim(text.substr(0, equals));
  return axis;
}

}  // namespace

Mesh::Mesh(World& world, std::vector<MeshAxis> axes)
    : world_(&world), axes_(std::move(axes)), strides_(axes_.size()), specs_(std::make_unique<SpecTable>(*this)) {
  for (size_t axis = axes_.size(); axis-- > 0;) {
    const auto& [name, size] = axes_[axis];
    if (name.empty()) fail<BadInput>("a mesh axis has no name (mesh {})", to_text(axes_));
    if (size < 1) fail<BadInput>("mesh axis {}={} should have a size of at least 1", name, size);
    if (find_axis(name) != static_cast<int>(axis)) fail<BadInput>("mesh axis {} is named twice", name);
    strides_[axis] = rank_count_;
    rank_count_ *= static_cast<int>(size);
  }
}

Mesh::~Mesh() = default;

int Mesh::find_axis(std::string_view name) const {
  for (size_t axis = 0; axis < axes_.size(); ++axis)
    if (axes_[axis].name == name) return static_cast<int>(axis);
  return -1;
}

int64_t Mesh::coordinate(int rank, int axis) const {
  return rank / strides_[static_cast<size_t>(axis)] % axis_size(axis);
}

RankGroup Mesh::group(int rank, int axis) const {
  const int stride = strides_[static_cast<size_t>(axis)];
  const int first = rank - static_cast<int>(coordinate(rank, axis)) * stride;
  RankGroup group;
  for (int64_t i = 0; i < axis_size(axis); ++i) group.push_back(first + static_cast<int>(i) * stride);
  return group;
}

std::string Mesh::text() const { return to_text(axes_); }

std::vector<MeshAxis> parse_mesh_axes(std::string_view text) {
  text = trim(text);
  if (text.empty() || text == "one device") return {};
  std::vector<MeshAxis> axes;
  for (const auto part : split(text, ',')) axes.push_back(parse_axis(part));
  return axes;
}

std::vector<std::vector<MeshAxis>> parse_mesh_list(std::string_view text) {
  std::vector<std::vector<MeshAxis>> meshes;
  for (const auto part : split(text, ';'))
    if (!part.empty()) meshes.push_back(parse_mesh_axes(part));
  if (meshes.empty()) fail<BadInput>("the list of meshes is empty; expected for example \"tp=2; dp_shard=2,tp=2\"");
  return meshes;
}

std::string to_text(const std::vector<MeshAxis>& axes) {
  if (axes.empty()) return "one device";
  std::string text;
  for (const auto& axis : axes) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

}  // namespace lockstep
