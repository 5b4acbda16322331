#pragma once
#include <torch/library.h>

#include <span>
#include <string>
#include <string_view>

#include "runtime/planning/rule.h"

namespace lockstep {

/// What canonical numerics changes in the rule of an op of our own (docs/numerics.md).
struct CanonicalForm {
  LocalFunction local = nullptr;   ///< null: that of the rule
  unsigned traits = Rule::kPlain;  ///< added to those of the rule
  bool on_gpu = false;             ///< has these bits on a GPU, too
};

/// All that is known of one op in the dispatcher's namespace `mesh`. (Derivatives are registered by its family, since
/// one derivative may be of several ops.)
struct OwnOp {
  /// Makes what the dispatcher calls; see kernel().
  using Kernel = torch::CppFunction (*)();

  const char* schema;       ///< "swiglu(Tensor both) -> Tensor"
  Kernel on_cpu;            ///< for plain CPU tensors
  Kernel on_gpu = nullptr;  ///< null: only canonical numerics needs the op
  Rule rule;                ///< for sharded tensors. Its `op` is "mesh::" and the name that the schema begins with
  CanonicalForm canonical = {};

  /// "swiglu"
  std::string name() const { return std::string(schema, std::string_view(schema).find('(')); }
};

/// The OwnOp::Kernel of a function: `kernel<kernels::swiglu>`.
template <auto* kFunction>
torch::CppFunction kernel() {
  return torch::CppFunction(TORCH_FN(kFunction));
}

/// The ops of one file of this folder.
struct OwnOpFamily {
  std::span<const OwnOp> ops;
  /// Registers what autograd calls instead of them, `mesh`, and instead of LibTorch's ops that they are parts of,
  /// `aten` (on the mesh alone). Null: no op of the family is differentiable.
  void (*register_derivatives)(torch::Library& aten, torch::Library& mesh) = nullptr;
};

}  // namespace lockstep
