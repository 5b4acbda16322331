#include "runtime/dispatch/plain_modules.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/context/parameter_names.h"
#include "runtime/dispatch/backend.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// Factories look for a kernel of the mesh, not for the one of a default device.
c10::impl::LocalDispatchKeySet mesh_factories() {
  register_backend();
  auto keys = c10::impl::tls_local_dispatch_key_set();
  keys.included_ = keys.included_ | c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  keys.excluded_ = keys.excluded_ | c10::DispatchKeySet(c10::DispatchKey::BackendSelect);
  return keys;
}

/// Whether `name` matches `pattern`, in which each `*` stands for any characters.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') return !name.empty() && name[0] == pattern[0] && matches(name.substr(1), pattern.substr(1));
  for (size_t skipped = 0; skipped <= name.size(); ++skipped)
    if (matches(name.substr(skipped), pattern.substr(1))) return true;
  return false;
}

Layout layout_for(const NamedParameter& parameter, const Mesh& mesh, const ParameterLayout& row) {
  auto layout = Layout::parse(mesh, row.layout);
  if (layout.any_partial()) fail<BadInput>("{}: {} would make a parameter a Partial", row.pattern, row.layout);
  for (const auto& placement : layout.placements())
    if (placement.is_shard() && placement.dim >= parameter.tensor.dim())
      fail<BadInput>("{}: {} does not fit parameter {} of {} dimensions", row.pattern, row.layout, parameter.name,
                     parameter.tensor.dim());
  return layout;
}

void put(const at::Tensor& parameter, const Layout& layout) {
  parameter.set_data(redistribute_values(parameter, layout, "shard_parameters"));
  if (parameter.requires_grad())
    parameter.register_hook([layout](const at::Tensor& gradient) { return redistribute(gradient, layout); });
}

}  // namespace

MeshConstruction::MeshConstruction(const Mesh& mesh, uint64_t seed, std::string_view name)
    : mesh_(mesh), random_(seed), name_(name), guard_(mesh_factories()) {}

void shard_parameters(std::span<const NamedParameter> parameters, const Mesh& mesh,
                      std::span<const ParameterLayout> rows) {
  std::vector<bool> decided(rows.size(), false);
  std::vector<Layout> layouts;
  layouts.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    if (!is_sharded(parameter.tensor))
      fail<BadInput>("parameter {} is not on the mesh; construct its module inside a MeshConstruction", parameter.name);
    const auto row =
        std::ranges::find_if(rows, [&](const auto& candidate) { return matches(parameter.name, candidate.pattern); });
    if (row != rows.end()) decided[static_cast<size_t>(row - rows.begin())] = true;
    layouts.push_back(row == rows.end() ? layout_of(parameter.tensor) : layout_for(parameter, mesh, *row));
  }
  for (size_t row = 0; row < rows.size(); ++row)
    if (!decided[row]) fail<BadInput>("{} decides the layout of no parameter", rows[row].pattern);
  for (size_t i = 0; i < parameters.size(); ++i) {
    put(parameters[i].tensor, layouts[i]);
    mesh.world().parameter_names().add(parameters[i].tensor, parameters[i].name);
  }
}

}  // namespace lockstep
