// Meshes and sharded tensors as ops of LibTorch's: what bindings/python/lockstep calls.
#include <torch/library.h>

#include <map>
#include <memory>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;

/// A World of simulated ranks with one mesh over all of them. It lives as long as the process: Python may hold a tensor
/// of it until then.
struct PythonMesh {
  std::unique_ptr<World> world;
  const Mesh* mesh;
};

std::vector<PythonMesh>& all_meshes() {
  static auto* const meshes = new std::vector<PythonMesh>;  // never destroyed: neither are Python's tensors
  return *meshes;
}

const Mesh& mesh_of(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(all_meshes().size()))
    fail<BadInput>("there is no mesh {}; lockstep.mesh() makes one", number);
  return *all_meshes()[static_cast<size_t>(number)].mesh;
}

int64_t make_mesh(std::string_view axes, bool canonical, bool float64, bool strict) {
  const auto parsed = parse_mesh_axes(axes);
  World::Options options;
  options.rank_count = static_cast<int>(rank_count(parsed));
  options.domain = float64 ? Domain::kFloat64 : Domain::kDeclared;
  options.numerics = canonical ? Numerics::kCanonical : Numerics::kNative;
  options.policy.strict = strict;
  auto world = std::make_unique<World>(std::move(options));
  const auto* mesh = &world->mesh(parsed);
  all_meshes().push_back({std::move(world), mesh});
  return static_cast<int64_t>(all_meshes().size()) - 1;
}

int64_t mesh(c10::string_view axes, bool canonical, bool float64, bool strict) {
  static std::map<std::string, int64_t> known;
  const auto key = c10::str(axes, ' ', canonical, float64, strict);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = make_mesh(axes, canonical, float64, strict);
}

const ShardedTensorImpl& checked(const Tensor& tensor) {
  if (!is_sharded(tensor)) fail<BadInput>("this tensor lies on no mesh; lockstep.distribute() brings it to one");
  return sharded(tensor);
}

Tensor distribute_on(const Tensor& plain, int64_t mesh, c10::string_view layout) {
  if (is_sharded(plain)) fail<BadInput>("this tensor lies on a mesh; lockstep.redistribute() gives it another layout");
  return distribute(plain.detach(), Layout::parse(mesh_of(mesh), layout));
}

Tensor from_shards_on(at::TensorList shards, int64_t mesh, c10::string_view layout, c10::IntArrayRef sizes,
                      c10::ScalarType dtype) {
  Shards all(shards.begin(), shards.end());
  return from_shards(std::move(all), Layout::parse(mesh_of(mesh), layout), sizes, dtype);
}

Tensor in_layout(const Tensor& tensor, c10::string_view layout) {
  checked(tensor);
  return redistribute(tensor, Layout::parse(layout_of(tensor).mesh(), layout));
}

std::string layout_text(const Tensor& tensor) { return checked(tensor).spec().layout.text(); }

/// Whoever writes to one writes to that rank's alone.
std::vector<Tensor> shards_of(const Tensor& tensor) {
  const auto& all = checked(tensor).shards()->local_tensors();
  for (const auto& shard : all) before_write(shard);
  return {all.begin(), all.end()};
}

/// What new tensors lie on, and what random ops draw from, until it is said anew.
void work_on(int64_t mesh, int64_t seed) {
  struct Scopes {
    MeshScope mesh;
    RandomScope random;
  };
  static Scopes* scopes = nullptr;  // the last ones never end: the thread's RunContext is gone before statics are
  const Mesh& next = mesh_of(mesh);
  delete std::exchange(scopes, nullptr);
  RunContext::current().begin_microbatch(0, 0);
  scopes = new Scopes{MeshScope(next), RandomScope(static_cast<uint64_t>(seed))};
}

TORCH_LIBRARY(lockstep, library) {
  library.def("mesh(str axes, bool canonical=False, bool float64=False, bool strict=False) -> int", &mesh);
  library.def("work_on(int mesh, int seed) -> ()", &work_on);
  library.def("distribute(Tensor plain, int mesh, str layout) -> Tensor", &distribute_on);
  library.def("from_shards(Tensor[] shards, int mesh, str layout, int[] sizes, ScalarType dtype) -> Tensor",
              &from_shards_on);
  library.def("redistribute(Tensor tensor, str layout) -> Tensor", &in_layout);
  library.def("gather(Tensor tensor) -> Tensor", [](const Tensor& tensor) { return checked(tensor), gather(tensor); });
  library.def("layout_of(Tensor tensor) -> str", &layout_text);
  library.def("shards_of(Tensor tensor) -> Tensor[]", &shards_of);
}

}  // namespace
}  // namespace lockstep
