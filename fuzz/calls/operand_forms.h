#pragma once
#include "fuzz/calls/sharded_calls.h"

namespace lockstep::testing {

/// How an operand lies on a mesh. Plain data: worlds of several threads place it alike.
struct OperandForm {
  enum Kind {
    kScattered,    ///< contiguous; unfinished values on every rank
    kTurned,       ///< with the strides of a transposed tensor
    kWithGaps,     ///< every second element of what lies in memory, from the second on; those between are others
    kExpanded,     ///< what repeats lies there once: strides of 0
    kDistributed,  ///< by distribute(), of a part of a larger transposed tensor, or of one with strides of 0
    kPlain         ///< not on the mesh
  };
  Kind kind = kScattered;
  Placements placements = {};
};

/// Any form and any layout. `dense`: its shards are contiguous.
OperandForm draw_form(const Mesh& mesh, const at::Tensor& plain, bool dense);

/// One that lies in memory as one device's operand does; or, unless it is `dense`, repeats elements as it does.
OperandForm::Kind draw_unmoved_kind(const at::Tensor& plain, bool dense);

/// The form of that kind, if the placements allow it.
OperandForm form_in(const Placements& placements, const at::Tensor& plain, OperandForm::Kind kind);

/// Whether some dimension has a stride of 0.
bool repeats(const at::Tensor& tensor);

/// One for each operand of a call. `forward`: the second of two may stay plain if it has no dimensions; derivatives'
/// formulas view indices, which are contiguous otherwise.
std::vector<OperandForm> draw_forms(const OpCase& op_case, const OpCall& call, const Mesh& mesh, bool forward = false);

at::Tensor place(const Mesh& mesh, const at::Tensor& plain, const OperandForm& form);
std::vector<at::Tensor> place_all(const Mesh& mesh, const OpCall& call, const std::vector<OperandForm>& forms);

/// " (operand 1 expanded)"; empty where all are scattered.
std::string text_of(const std::vector<OperandForm>& forms);

/// Along some dimension of an operand that is not written, sometimes, repeats its first element: a stride of 0.
void draw_repeats(OpCall& call);

}  // namespace lockstep::testing
