#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/tensor/layout.h"

/// A user's own torch::nn module on a mesh, unchanged and unannotated. examples/own_module shows the whole of it.
namespace lockstep {

/// While it lives, factories that name no device (torch::empty in a module's constructor) make replicated tensors on
/// `mesh`: a module constructed here has its parameters there. Initial values are functions of `seed`, `name` and the
/// order of construction, not of the mesh. Keep it around constructors only: ops on plain tensors do not work inside.
class MeshConstruction {
 public:
  MeshConstruction(const Mesh& mesh, uint64_t seed, std::string_view name = "module");

 private:
  MeshScope mesh_;
  InitialValuesScope initial_;
  RandomScope random_;
  ModuleScope name_;
  c10::impl::ForceDispatchKeyGuard guard_;
};

/// The layout, in text form, of the parameters whose names match; `*` in a pattern stands for any characters.
struct ParameterLayout {
  std::string pattern;  ///< "*.in.weight"
  std::string layout;   ///< "[tp=S(0)]"
};

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};

/// Moves parameters (leaves) to the layouts that `rows` give them, in place, and pins each one's gradient to its
/// parameter's layout. From then on ops that read a parameter carry its module's path in their ids, in forward and in
/// backward. The first row that matches decides; a parameter that none matches is only pinned. Throws
/// BadInput for a row that decides nothing, a layout that does not fit, and a parameter that is not on the mesh.
void shard_parameters(std::span<const NamedParameter> parameters, const Mesh& mesh,
                      std::span<const ParameterLayout> rows);

/// The same for all parameters of a torch::nn module.
template <class Module>
requires requires(const Module& module) { module.named_parameters(); }
void shard_parameters(const Module& module, const Mesh& mesh, std::span<const ParameterLayout> rows) {
  std::vector<NamedParameter> parameters;
  for (const auto& item : module.named_parameters()) parameters.push_back({item.key(), item.value()});
  shard_parameters(std::span<const NamedParameter>(parameters), mesh, rows);
}

}  // namespace lockstep
