#pragma once
#include <memory>
#include <optional>

#include "consistency/blame.h"
#include "replay/store/op_case.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule_set.h"
#include "runtime/tensor/layout.h"

namespace lockstep::fuzz {

using Rules = std::shared_ptr<const RuleSet>;

/// The case of a finding with whole operands, which can be made smaller and cut again.
struct WholeCase {
  replay::OpCase origin;  ///< what stays: op, numerics, domain, finding
  std::vector<MeshAxis> axes;
  torch::jit::Stack arguments;  ///< plain tensors, whole
  struct Operand {
    Slot slot;
    Placements placements;
    int simplicity = 0;  ///< of its values: how many of simplified() have been taken
  };
  std::vector<Operand> operands;     ///< those that are sharded
  std::optional<Placements> target;  ///< of a move
  /// Whether Partial axes hold values that differ on every rank (scatter()); else the first rank has all.
  bool spread = false;

  at::Tensor value(const Operand& operand) const;
};

/// Throws BadInput for what cannot be run (try_case()).
WholeCase whole_case(const replay::OpCase& one);

/// Cut for its mesh, with what one device gives. Throws what LibTorch and the rules throw.
replay::OpCase cut_case(const WholeCase& whole);

/// What differs from one device, if anything and if it runs. `rules`: the mesh's; the built-in ones if null.
std::optional<Blame> blame_of(const WholeCase& whole, const Rules& rules);

/// "aten::mm(Float[2, 1] [tp=S(1)], Float[1, 2] [tp=S(0)]) on tp=2"
std::string describe(const WholeCase& whole);

}  // namespace lockstep::fuzz
