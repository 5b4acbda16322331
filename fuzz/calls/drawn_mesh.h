#pragma once
#include "fuzz/calls/sharded_calls.h"

namespace lockstep::testing {

/// A mesh of its own world, drawn: 1 to 3 axes of at most 8 ranks, or 4 of at most 32; or a part of such a mesh.
struct DrawnMesh {
  DrawnMesh(Domain domain, const Rules& rules, bool strict, lockstep::Numerics numerics = lockstep::Numerics::kNative);
  World::Options options;
  std::vector<MeshAxis> axes;  ///< of the whole mesh
  bool is_part;
  std::unique_ptr<World> world;
  const Mesh* mesh;
};

/// Numbers for a case: exact inputs in any dtype, or reals in the float64 domain or declared as doubles.
Numerics draw_numerics(const OpCase& op_case);

/// Whether the case says nothing of the dtype: what LibTorch refuses then is left out.
bool is_tried(const OpCase& op_case, c10::ScalarType dtype);

/// The arguments of a random call; it is left out where LibTorch cannot make them of a dtype that is tried.
OpCall draw_call(const OpCase& op_case, const Numerics& numerics);

/// Whether LibTorch adds numbers of the tensor's dtype, so that there may be unfinished sums of them.
bool has_sums(const at::Tensor& tensor);

/// A random layout for a tensor: any reduction its dtype allows, units up to 3, any cut order.
Layout draw_layout(const Mesh& mesh, const at::Tensor& tensor);

}  // namespace lockstep::testing
