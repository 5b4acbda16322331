#include "runtime/tensor/ranks.h"

namespace lockstep {

Ranks::Ranks(World& world, Options options) : world_(&world), options_(std::move(options)) {}
Ranks::~Ranks() = default;

const Mesh& Ranks::mesh(const std::vector<MeshAxis>& axes) {
  for (const auto& mesh : meshes_)
    if (&mesh->whole() == mesh.get() && mesh->axes() == axes) return *mesh;
  return *meshes_.emplace_back(std::make_unique<Mesh>(*this, axes));
}

const Mesh& Ranks::mesh(std::string_view text) {
  const auto parsed = parse_mesh_text(text);
  const Mesh* mesh = &this->mesh(parsed.axes);
  for (const auto& [axis, coordinate] : parsed.at) mesh = &mesh->submesh(axis, coordinate);
  return *mesh;
}

const Mesh& Ranks::submesh(const Mesh& whole, const std::vector<int64_t>& fixed) {
  for (const auto& mesh : meshes_)
    if (&mesh->whole() == &whole && mesh->fixed() == fixed && !mesh->is_transfer_end()) return *mesh;
  return *meshes_.emplace_back(std::make_unique<Mesh>(whole, fixed));
}

const Mesh& Ranks::transfer_end(const Mesh& whole, const TransferEnd& end) {
  for (const auto& mesh : meshes_)
    if (&mesh->whole() == &whole && mesh->transfer_end() == end) return *mesh;
  return *meshes_.emplace_back(std::make_unique<Mesh>(whole, end));
}

}  // namespace lockstep
